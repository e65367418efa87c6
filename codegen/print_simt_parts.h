// print_simt_parts - what the print_simt*.c files share: the printer, and how values,
// memory and statements are spelled. Private to them.
//
// print_simt.c walks statements; print_simt_together.c what threads of a block do
// together; print_simt_copy.c asynchronous copies; print_simt_launch.c reads off the
// launch and spells the kernel's head; print_simt_value.c spells indices and elements,
// print_simt_memory.c loads, stores and declarations.
#ifndef FT_CODEGEN_PRINT_SIMT_PARTS_H
#define FT_CODEGEN_PRINT_SIMT_PARTS_H

#include "codegen/print_simt.h"
#include "core/strbuf.h"

typedef struct ft_simt_printer {
  ft_kir *kir;
  ft_strbuf out;
  int depth;  // of indentation
  bool is_sim;
  ft_simt_launch launch;
  const ft_kir_stmt **loop_of;  // [value] the loop whose variable it is
  bool *is_named;               // [value] indices with a name
  bool *is_spread;              // [value] SIM: an array over the threads
  bool *is_array;               // [buffer] the same for registers
  const char *thread;           // SIM: the thread meant: "t" or "0"
  uint64_t *offset;             // [buffer] shared: bytes from the pool's start
  bool is_pooled;               // CUDA: shared buffers lie in one array
} ft_simt_printer;

// ---- the launch
// Fills |p->launch| and |p->loop_of|. NULL, or why the kernel has no SIMT text.
const char *ft_simt_measure(ft_simt_printer *p);
// Up to the body's first statement.
void ft_simt_put_head(ft_simt_printer *p, const char *name);

// ---- statements
void ft_simt_put_stmt(ft_simt_printer *p, const ft_kir_stmt *s);
void ft_simt_put_block(ft_simt_printer *p, const ft_kir_block *block);
// What |block| named is not known after it.
void ft_simt_end_scope(ft_simt_printer *p, const ft_kir_block *block);
// "for (...) {", "if (...) {", what the last of a grid's blocks does; "}".
void ft_simt_open_for(ft_simt_printer *p, const ft_kir_stmt *s);
void ft_simt_open_if(ft_simt_printer *p, const ft_kir_stmt *s);
void ft_simt_open_grid_done(ft_simt_printer *p, const ft_kir_stmt *s);
void ft_simt_close_grid_done(ft_simt_printer *p);
void ft_simt_close(ft_simt_printer *p);

// ---- asynchronous copies
void ft_simt_put_copy(ft_simt_printer *p, const ft_kir_stmt *s);
void ft_simt_put_commit(ft_simt_printer *p, const ft_kir_stmt *s);
void ft_simt_put_wait(ft_simt_printer *p, const ft_kir_stmt *s);
// The CUDA functions that |body| calls for them.
void ft_simt_copy_prelude(const char *body, ft_strbuf *out);

// ---- SIM: threads
// The body of the thread loop |s|.
void ft_simt_put_threads(ft_simt_printer *p, const ft_kir_stmt *s);

// ---- values
void ft_simt_start_line(ft_simt_printer *p);
const ft_kir_value *ft_simt_value_of(const ft_simt_printer *p, ft_kir_id id);
// Divides every value that the index takes; 0 for the number 0, else >= 1.
int64_t ft_simt_divisor(const ft_simt_printer *p, ft_kir_id id);
// An index: its name when it has one. put_index_text: the expression in any case.
void ft_simt_put_index(ft_simt_printer *p, ft_kir_id id);
void ft_simt_put_index_text(ft_simt_printer *p, ft_kir_id id);
void ft_simt_put_name(ft_simt_printer *p, ft_kir_id id);
// One lane of an element; |lane| is C text.
void ft_simt_put_element_name(ft_simt_printer *p, ft_kir_id id, const char *lane);
// The right-hand side, for one lane, of everything but loads and folds.
void ft_simt_put_lane(ft_simt_printer *p, const ft_kir_value *v, const char *lane);
// Starts a statement for each lane from |from| on, with the variable "l"; one lane: no
// loop.
void ft_simt_open_lanes(ft_simt_printer *p, uint32_t from, uint32_t lanes);
const char *ft_simt_lane_of(uint32_t lanes);  // "l", or "0" for one lane

// ---- memory
// Whole statements. A load is of a value that is declared.
void ft_simt_put_load(ft_simt_printer *p, ft_kir_id id);
void ft_simt_put_store(ft_simt_printer *p, const ft_kir_stmt *s);
// |is_spread|, |is_array|: SIM, an array over the threads.
void ft_simt_declare_value(ft_simt_printer *p, ft_kir_id id, bool is_spread);
void ft_simt_declare_register(ft_simt_printer *p, uint32_t buffer, bool is_array);
void ft_simt_declare_shared(ft_simt_printer *p, uint32_t buffer);
void ft_simt_poison_register(ft_simt_printer *p, uint32_t buffer);
// Bytes of one access in the CUDA text, of those that |lanes| elements from |index| on
// are moved by; 0: one by one. Of |p|, kir and loop_of are looked at.
uint32_t ft_simt_access_bytes(const ft_simt_printer *p, ft_dtype dtype, uint32_t lanes,
                              ft_kir_id index, int64_t stride);

#endif
