// kir - the kernel IR: structured statements over typed values, for every printer.
//
// A kernel is a tree of statements. Values are single assignment; lanes > 1 are short
// vectors that one thread holds. lanes 0 is an index: a 64-bit integer that addresses and
// counts. Indices are pure expressions and need no Let; elements exist from their Let on.
//
// The node set is SIMT: grid and thread loops, barriers, shuffles, shared memory. The
// plain C printer takes kernels with one thread per block (print_c.h).
//
// Values are computed in their own dtype, but F16 and BF16 are for memory only: what is
// loaded from such a buffer is an F32 value, and a store rounds it again. Builders take
// either dtype and do that (ft_kir_math_dtype); a CAST to one of them rounds and stays
// F32.
//
// Everything lives in the arena given to ft_kir_create; when it is exhausted |failed| is
// set, builders go on with value 0, and ft_kir_verify reports it. Thread-compatible.
#ifndef FT_CODEGEN_KIR_H
#define FT_CODEGEN_KIR_H

#include "graph/graph.h"

typedef uint32_t ft_kir_id;  // of a value

typedef struct ft_kir_type {
  ft_dtype dtype;
  uint16_t lanes;  // 0: an index
} ft_kir_type;

typedef enum ft_kir_space {
  FT_KIR_GLOBAL,     // a kernel argument
  FT_KIR_SHARED,     // one per block
  FT_KIR_SCRATCH,    // one per thread, in memory
  FT_KIR_WORKSPACE,  // one per launch, in memory: 0 before the first, kept between them
  FT_KIR_REGISTER,   // one per thread, in variables
} ft_kir_space;

typedef struct ft_kir_buffer {
  ft_kir_space space;
  ft_dtype dtype;
  uint16_t lanes;     // registers
  int64_t count;      // elements; registers: vectors of |lanes|, 1 for a variable
  uint32_t argument;  // global, workspace: position in the ABI's buffers
  bool is_written;
  uint64_t offset;  // scratch, workspace: bytes from its start
} ft_kir_buffer;

typedef enum ft_kir_op {
  // indices
  FT_KIR_NUMBER,  // imm
  FT_KIR_LOOP,    // a loop's variable
  FT_KIR_IADD,
  FT_KIR_ISUB,
  FT_KIR_IMUL,
  FT_KIR_IDIV,  // both operands >= 0, divisor > 0
  FT_KIR_IMOD,
  FT_KIR_IMIN,
  FT_KIR_IMAX,
  FT_KIR_ILESS,     // 0 or 1
  FT_KIR_TO_INDEX,  // an integer element of one lane
  // elements
  FT_KIR_ELEMENT,    // a constant: imm holds the bits (floats: of the double)
  FT_KIR_PRIMITIVE,  // |primitive| on the operands; CAST to type.dtype
  FT_KIR_SPLAT,      // one lane to many
  FT_KIR_KEEP,       // lanes below imm of operand 0 replaced by operand 1
  FT_KIR_COMBINE,    // |primitive| (a reduction) of two vectors, lane by lane
  FT_KIR_FOLD,       // |primitive| (a reduction) over the lanes: one lane
  FT_KIR_LANE,       // lane imm of operand 0: one lane
  FT_KIR_NARROW,     // operand 0 (f32) rounded to the dtype imm (F16, BF16), still f32
  FT_KIR_LOAD,       // buffer[index + lane * imm]; registers: vector |index|
  FT_KIR_SHUFFLE,    // operand 0 of thread (own xor imm)
} ft_kir_op;

typedef enum ft_kir_hint {
  FT_KIR_CACHED,
  FT_KIR_STREAMED,  // will not be read again soon: non-temporal
} ft_kir_hint;

// Who may hold a different value.
typedef enum ft_kir_level {
  FT_KIR_SAME,
  FT_KIR_PER_BLOCK,
  FT_KIR_PER_THREAD
} ft_kir_level;

typedef struct ft_kir_value {
  ft_kir_op op;
  ft_kir_type type;
  ft_op primitive;
  ft_kir_id operand[3];  // LOAD: operand[0] is the index
  uint8_t operand_count;
  uint32_t buffer;
  int64_t imm;
  ft_kir_level level;
  ft_kir_hint hint;  // LOAD
} ft_kir_value;

typedef enum ft_kir_loop {
  FT_KIR_GRID,    // over blocks; outermost, once
  FT_KIR_THREAD,  // over the threads of a block; in the grid loop
  FT_KIR_SERIAL,
  FT_KIR_UNROLL,  // begin, end and step are numbers
  FT_KIR_VECTOR,  // steps by the lanes of what it loads and stores
} ft_kir_loop;

typedef enum ft_kir_kind {
  FT_KIR_LET,      // |value| exists from here on
  FT_KIR_FOR,      // value: the variable; begin, end, step
  FT_KIR_IF,       // value: the condition (index); then, else
  FT_KIR_STORE,    // value to buffer[index + lane * stride]
  FT_KIR_TURN,     // a square of |lanes| (4 or more) f32, transposed: element (i, j),
                   // source[source_index + i * source_stride + j], to
                   // buffer[index + j * stride + i]
  FT_KIR_ALLOC,    // buffer (shared, register) exists from here on
  FT_KIR_BARRIER,  // all threads of the block
  FT_KIR_FAIL,     // the block ends: its entry returns |code|
  FT_KIR_FENCE,    // streamed stores are visible to whoever learns that the block is done
  FT_KIR_PREFETCH,   // buffer[index] will be read soon
  FT_KIR_GRID_DONE,  // the body runs in the last of |end| blocks that get here with the
                     // counter buffer[index]: it sees all that the others stored before.
                     // The counter is 0 again for the next launch. All threads of a
                     // block arrive together, and it is counted once; no barrier is
                     // needed before it.
  FT_KIR_COPY,       // starts to copy |lanes| elements (4, 8 or 16 bytes in all) from
                     // source[source_index], global and not written by this kernel, to
                     // buffer[index], shared; zeros instead when the index |value| is 0
                     // (no |value|: never). Both are aligned to those bytes. Neither may
                     // be touched before a WAIT of the same thread, and by other threads
                     // before a barrier behind that
  FT_KIR_COMMIT,     // the thread's copies since its last COMMIT are a batch
  FT_KIR_WAIT,       // until at most |code| of the thread's batches are under way
} ft_kir_kind;

typedef struct ft_kir_stmt ft_kir_stmt;

typedef struct ft_kir_block {
  ft_kir_stmt *first, *last;
} ft_kir_block;

struct ft_kir_stmt {
  ft_kir_kind kind;
  ft_kir_stmt *next;
  ft_kir_id value;
  ft_kir_loop loop;
  ft_kir_id begin, end, step;
  ft_kir_block body, otherwise;
  uint32_t buffer;
  ft_kir_id index;
  int64_t stride;
  ft_kir_hint hint;
  int32_t code;
  uint32_t source;
  ft_kir_id source_index;
  int64_t source_stride;
  uint16_t lanes;
};

typedef struct ft_kir {
  ft_arena *arena;
  uint32_t value_count, buffer_count;
  size_t value_capacity, buffer_capacity;
  ft_kir_value *value;
  ft_kir_buffer *buffer;
  ft_kir_block body;
  uint64_t scratch_bytes, workspace_bytes;
  uint32_t min_blocks;  // GPUs: that one multiprocessor has registers for; 0: not said
  bool failed;          // out of memory; nothing may be printed
  ft_kir_stmt spare;    // what builders get then
} ft_kir;

enum { FT_KIR_MOST_BLOCKS = 32 };  // on a multiprocessor at a time, whatever the chip

ft_kir *ft_kir_create(ft_arena *arena);  // NULL: out of memory

// ---- buffers ----------------------------------------------------------------------
// What values of |dtype| are computed in: F32 for F16 and BF16, else |dtype|.
ft_dtype ft_kir_math_dtype(ft_dtype dtype);
uint32_t ft_kir_global(ft_kir *kir, ft_dtype dtype, int64_t count, uint32_t argument,
                       bool is_written);
uint32_t ft_kir_scratch(ft_kir *kir, ft_dtype dtype, int64_t count);
uint32_t ft_kir_workspace(ft_kir *kir, ft_dtype dtype, int64_t count, uint32_t argument);
uint32_t ft_kir_shared(ft_kir *kir, ft_kir_block *at, ft_dtype dtype, int64_t count);
uint32_t ft_kir_register(ft_kir *kir, ft_kir_block *at, ft_kir_type type);
// |count| of them: each index is known once UNROLL loops are unrolled.
uint32_t ft_kir_registers(ft_kir *kir, ft_kir_block *at, ft_kir_type type, int64_t count);

// ---- indices (folded when known) -----------------------------------------------------
ft_kir_id ft_kir_number(ft_kir *kir, int64_t value);
ft_kir_id ft_kir_index(ft_kir *kir, ft_kir_op op, ft_kir_id a, ft_kir_id b);
// What |op|, IADD to ILESS, makes of two numbers; a division by 0 or less gives 0.
int64_t ft_kir_calculate(ft_kir_op op, int64_t a, int64_t b);
// The integer element |a| (one lane) as an index.
ft_kir_id ft_kir_to_index(ft_kir *kir, ft_kir_id a);
// True, and its value, when |id| is a number.
bool ft_kir_is_number(const ft_kir *kir, ft_kir_id id, int64_t *out);
// Gives an index a name: it is computed once, at |at|.
ft_kir_id ft_kir_let(ft_kir *kir, ft_kir_block *at, ft_kir_id index);

// ---- elements: each is a Let appended to |at| ----------------------------------------
// |bits|: of the double for float dtypes, the integer for others.
ft_kir_id ft_kir_element(ft_kir *kir, ft_kir_block *at, ft_kir_type type, int64_t bits);
ft_kir_id ft_kir_primitive(ft_kir *kir, ft_kir_block *at, ft_op op, ft_dtype dtype,
                           const ft_kir_id *operand, uint32_t count);
ft_kir_id ft_kir_splat(ft_kir *kir, ft_kir_block *at, ft_kir_id a, uint16_t lanes);
ft_kir_id ft_kir_keep(ft_kir *kir, ft_kir_block *at, ft_kir_id a, ft_kir_id other,
                      uint16_t first);
ft_kir_id ft_kir_combine(ft_kir *kir, ft_kir_block *at, ft_op reduction, ft_kir_id a,
                         ft_kir_id b);
ft_kir_id ft_kir_fold(ft_kir *kir, ft_kir_block *at, ft_op reduction, ft_kir_id a);
ft_kir_id ft_kir_lane(ft_kir *kir, ft_kir_block *at, ft_kir_id a, uint16_t lane);
ft_kir_id ft_kir_load(ft_kir *kir, ft_kir_block *at, uint32_t buffer, uint16_t lanes,
                      ft_kir_id index, int64_t stride);
ft_kir_id ft_kir_load_hinted(ft_kir *kir, ft_kir_block *at, uint32_t buffer,
                             uint16_t lanes, ft_kir_id index, int64_t stride,
                             ft_kir_hint hint);
ft_kir_id ft_kir_shuffle(ft_kir *kir, ft_kir_block *at, ft_kir_id a, int64_t mask);

// ---- statements -----------------------------------------------------------------------
void ft_kir_store(ft_kir *kir, ft_kir_block *at, uint32_t buffer, ft_kir_id value,
                  ft_kir_id index, int64_t stride, ft_kir_hint hint);
// FT_KIR_TURN: where a square lies in a buffer.
typedef struct ft_kir_square {
  uint32_t buffer;
  ft_kir_id index;
  int64_t stride;  // between rows
} ft_kir_square;
void ft_kir_turn(ft_kir *kir, ft_kir_block *at, ft_kir_square from, ft_kir_square to,
                 uint16_t lanes);
void ft_kir_barrier(ft_kir *kir, ft_kir_block *at);
void ft_kir_fence(ft_kir *kir, ft_kir_block *at);
void ft_kir_prefetch(ft_kir *kir, ft_kir_block *at, uint32_t buffer, ft_kir_id index);
// FT_KIR_COPY: of |lanes| elements; |condition| is an index, 0: always.
void ft_kir_copy(ft_kir *kir, ft_kir_block *at, uint32_t from, ft_kir_id from_index,
                 uint32_t to, ft_kir_id to_index, uint16_t lanes, ft_kir_id condition);
void ft_kir_commit(ft_kir *kir, ft_kir_block *at);
void ft_kir_wait(ft_kir *kir, ft_kir_block *at, int32_t batches);
void ft_kir_fail(ft_kir *kir, ft_kir_block *at, int32_t code);
// A loop statement that is not in a block yet: fill |body| (statements that its body
// needs first may still go to the outer block), then ft_kir_append it. The variable is
// stmt->value.
ft_kir_stmt *ft_kir_for(ft_kir *kir, ft_kir_loop loop, ft_kir_id begin, ft_kir_id end,
                        ft_kir_id step);
ft_kir_stmt *ft_kir_if(ft_kir *kir, ft_kir_id condition);
// FT_KIR_GRID_DONE: |counter| is an i32 workspace buffer, |blocks| how many get there.
ft_kir_stmt *ft_kir_grid_done(ft_kir *kir, uint32_t counter, ft_kir_id index,
                              ft_kir_id blocks);
void ft_kir_append(ft_kir_block *at, ft_kir_stmt *stmt);

// ---- checking -------------------------------------------------------------------------
// NULL when the kernel is well formed, else what is wrong, in the kernel's arena:
//  1. every element is used after its Let, in scope; loop variables inside their loop;
//  2. dtypes and lanes of operands, loads and stores agree; lanes are powers of two;
//  3. buffers are used in scope, written only when writable;
//  4. one grid loop, outermost; thread loops directly below it;
//  5. barriers, shuffles and grid-done only where all threads of a block arrive together;
//  6. grid-done counts in an i32 workspace buffer, inside the grid loop;
//  7. an index into several registers depends on numbers and UNROLL loops only;
//  8. copies go from global memory that is not written to shared memory, 4, 8 or 16 bytes
//     at a time, inside the thread loop, as do commits and waits;
//  9. min_blocks and their threads are what a multiprocessor of some chip can hold.
const char *ft_kir_verify(ft_kir *kir);
// NULL, or why no multiprocessor of any chip holds |min_blocks| of |threads|. Static.
const char *ft_kir_min_blocks_refusal(uint32_t min_blocks, int64_t threads);

#endif
