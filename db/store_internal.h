// store_internal - the store's body, for the files of db/ only.
#ifndef FT_DB_STORE_INTERNAL_H
#define FT_DB_STORE_INTERNAL_H

#include "core/arena.h"
#include "core/strbuf.h"
#include "db/owner.h"
#include "db/sql.h"
#include "db/store.h"

enum { FT_STORE_VERSION = 2, FT_QUARANTINE_STRIKES = 2 };

struct ft_store {
  const ft_allocator *allocator;
  ft_arena *arena;    // lives as long as the store
  ft_arena *scratch;  // reset at the start of each public call that uses it
  const char *path;
  sqlite3 *db;
  char owner[FT_OWNER_TEXT];
  uint32_t codegen_version;  // that plans must have; 0: any
  sqlite3_stmt *statement[FT_SQL_COUNT];
};

// Opens and migrates; on error |store->db| may be open (ft_store_close handles it).
FT_MUST_CHECK ft_status ft_store_connect(ft_store *store, ft_error *error);
// CORRUPT when the file's pages are not in order; keeps |store->scratch|.
FT_MUST_CHECK ft_status ft_store_quick_check(ft_store *store, ft_error *error);
// Pending rows of dead owners become interrupted.
FT_MUST_CHECK ft_status ft_store_recover(ft_store *store, ft_error *error);

// Inside a transaction: adds |strikes| for |reason|. At FT_QUARANTINE_STRIKES the
// candidate leaves `best` and every plan that uses it is no longer served.
FT_MUST_CHECK ft_status ft_quarantine_strike(ft_store *store, int64_t candidate_id,
                                             int64_t strikes, const char *reason,
                                             ft_error *error);
// Inside a transaction: takes back the strikes of a candidate that is not quarantined.
FT_MUST_CHECK ft_status ft_quarantine_clear(ft_store *store, int64_t candidate_id,
                                            ft_error *error);
// The reason in |arena|, NULL when the candidate may run.
FT_MUST_CHECK ft_status ft_quarantine_find(ft_store *store, int64_t candidate_id,
                                           ft_arena *arena, const char **out_reason,
                                           ft_error *error);

// Inside a transaction: finds or adds the build of |module| with its artifacts.
// *out_id is 0 when the module was never printed (no body hash).
FT_MUST_CHECK ft_status ft_build_save(ft_store *store, const ft_module *module,
                                      int64_t target_id, int64_t *out_id,
                                      ft_error *error);
// Inside a transaction: as ft_store_artifact.
FT_MUST_CHECK ft_status ft_artifact_add(ft_store *store, const char *kind,
                                        const void *data, size_t size, ft_hash *out_hash,
                                        ft_error *error);

// The row of |workload|; 0: none. As ft_store_candidate finds it.
FT_MUST_CHECK ft_status ft_workload_find(ft_store *store, const ft_workload *workload,
                                         int64_t *out_id, ft_error *error);
// Adds "threads (there 8, here 2), units": the members in which two target keys differ,
// the first with its values.
void ft_match_differences(ft_strbuf *text, const char *there, const char *here,
                          ft_arena *scratch);
// NOT_FOUND with what there is instead of the served plan.
ft_status ft_match_explain(ft_store *store, const ft_graph *graph,
                           const ft_target *target, ft_error *error);
// The dims of |graph|, {} when it has none.
const char *ft_store_dims(const ft_graph *graph);

#endif
