// kir - the kernel IR: structured statements over typed values, for every printer.
//
// A kernel is a tree of statements. Values are single assignment; lanes > 1 are short
// vectors that one thread holds. lanes 0 is an index: a 64-bit integer that addresses and
// counts. Indices are pure expressions and need no Let; elements exist from their Let on.
//
// The node set is SIMT: grid and thread loops, barriers, shuffles, shared memory. The
// plain C printer takes kernels with one thread per block (print_c.h).
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
  FT_KIR_REGISTER,   // one per thread, a variable; count 1
} ft_kir_space;

typedef struct ft_kir_buffer {
  ft_kir_space space;
  ft_dtype dtype;
  uint16_t lanes;     // registers
  int64_t count;      // elements (registers: 1)
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
  FT_KIR_LOAD,       // buffer[index + lane * imm]
  FT_KIR_SHUFFLE,    // operand 0 of thread (own xor imm)
} ft_kir_op;

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
} ft_kir_value;

typedef enum ft_kir_hint {
  FT_KIR_CACHED,
  FT_KIR_STREAMED,  // will not be read soon: non-temporal
} ft_kir_hint;

typedef enum ft_kir_loop {
  FT_KIR_GRID,    // over blocks; outermost, once
  FT_KIR_THREAD,  // over the threads of a block; in the grid loop
  FT_KIR_SERIAL,
  FT_KIR_UNROLL,
  FT_KIR_VECTOR,  // steps by the lanes of what it loads and stores
} ft_kir_loop;

typedef enum ft_kir_kind {
  FT_KIR_LET,      // |value| exists from here on
  FT_KIR_FOR,      // value: the variable; begin, end, step
  FT_KIR_IF,       // value: the condition (index); then, else
  FT_KIR_STORE,    // value to buffer[index + lane * stride]
  FT_KIR_ALLOC,    // buffer (shared, register) exists from here on
  FT_KIR_BARRIER,  // all threads of the block
  FT_KIR_FAIL,     // the block ends: its entry returns |code|
  FT_KIR_FENCE,    // streamed stores are visible to whoever learns that the block is done
  FT_KIR_PREFETCH,   // buffer[index] will be read soon
  FT_KIR_GRID_DONE,  // the body runs in the last of |end| blocks that get here with the
                     // counter buffer[index]: it sees all that the others stored before.
                     // The counter is 0 again for the next launch.
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
};

typedef struct ft_kir {
  ft_arena *arena;
  uint32_t value_count, buffer_count;
  size_t value_capacity, buffer_capacity;
  ft_kir_value *value;
  ft_kir_buffer *buffer;
  ft_kir_block body;
  uint64_t scratch_bytes, workspace_bytes;
  bool failed;        // out of memory; nothing may be printed
  ft_kir_stmt spare;  // what builders get then
} ft_kir;

ft_kir *ft_kir_create(ft_arena *arena);  // NULL: out of memory

// ---- buffers ----------------------------------------------------------------------
uint32_t ft_kir_global(ft_kir *kir, ft_dtype dtype, int64_t count, uint32_t argument,
                       bool is_written);
uint32_t ft_kir_scratch(ft_kir *kir, ft_dtype dtype, int64_t count);
uint32_t ft_kir_workspace(ft_kir *kir, ft_dtype dtype, int64_t count, uint32_t argument);
uint32_t ft_kir_shared(ft_kir *kir, ft_kir_block *at, ft_dtype dtype, int64_t count);
uint32_t ft_kir_register(ft_kir *kir, ft_kir_block *at, ft_kir_type type);

// ---- indices (folded when known) -----------------------------------------------------
ft_kir_id ft_kir_number(ft_kir *kir, int64_t value);
ft_kir_id ft_kir_index(ft_kir *kir, ft_kir_op op, ft_kir_id a, ft_kir_id b);
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
ft_kir_id ft_kir_load(ft_kir *kir, ft_kir_block *at, uint32_t buffer, uint16_t lanes,
                      ft_kir_id index, int64_t stride);
ft_kir_id ft_kir_shuffle(ft_kir *kir, ft_kir_block *at, ft_kir_id a, int64_t mask);

// ---- statements -----------------------------------------------------------------------
void ft_kir_store(ft_kir *kir, ft_kir_block *at, uint32_t buffer, ft_kir_id value,
                  ft_kir_id index, int64_t stride, ft_kir_hint hint);
void ft_kir_barrier(ft_kir *kir, ft_kir_block *at);
void ft_kir_fence(ft_kir *kir, ft_kir_block *at);
void ft_kir_prefetch(ft_kir *kir, ft_kir_block *at, uint32_t buffer, ft_kir_id index);
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

// ---- checking
// --------------------------------------------------------------------------- NULL when
// the kernel is well formed, else what is wrong, in the kernel's arena:
//  1. every element is used after its Let, in scope; loop variables inside their loop;
//  2. dtypes and lanes of operands, loads and stores agree; lanes are powers of two;
//  3. buffers are used in scope, written only when writable;
//  4. one grid loop, outermost; thread loops directly below it;
//  5. barriers, shuffles and grid-done only where all threads of a block arrive together;
//  6. grid-done counts in an i32 workspace buffer, inside the grid loop.
const char *ft_kir_verify(ft_kir *kir);

#endif
