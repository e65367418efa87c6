#include "tests/support/stores.h"

TestSuite(db_schema, .init = store_set_up, .fini = store_tear_down);

Test(db_schema, a_new_store_has_every_table_and_version_2) {
  static const char *const tables[] = {
      "target",     "graph", "binding",    "workload", "candidate",  "artifact", "build",
      "run",        "trial", "best",       "counter",  "quarantine", "plan",     "model",
      "plan_group", "job",   "comparison", "refusal",  "ceiling",    "alarm"};
  store_open();
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    cr_assert_eq(count_of(tables[i]), 0, "%s", tables[i]);
  EXPECT_SQL("20", "SELECT count(*) FROM sqlite_master WHERE type = 'table'");
  EXPECT_SQL("20",
             "SELECT count(*) FROM sqlite_master WHERE type = 'table'"
             " AND sql LIKE '%STRICT%'");
  EXPECT_SQL("2", "PRAGMA user_version");
  EXPECT_SQL("wal", "PRAGMA journal_mode");
  EXPECT_SQL("ok", "PRAGMA integrity_check");
}

Test(db_schema, a_table_that_is_not_there_is_an_invalid_argument) {
  int64_t count;
  store_open();
  cr_assert_eq(ft_store_count(store, "trails", &count, &error), FT_INVALID_ARGUMENT);
  cr_assert(strstr(error.text, "'trails'"), "%s", error.text);
  cr_assert_eq(ft_store_count(store, "trial\"; DROP TABLE trial; --", &count, &error),
               FT_INVALID_ARGUMENT);
  cr_assert_eq(count_of("trial"), 0);
}

// Rows that hold: each refusal below changes one thing of them.
static const char rows[] =
    "INSERT INTO "
    "target(id,signature,key,name,kind,device,isa,compilers,libraries,numerics,"
    "ceilings) VALUES(1,x'01','{}','cpu','cpu','d','',"
    "'{}','','','{}');"
    "INSERT INTO graph VALUES(1,x'01',x'00','g',1,1);"
    "INSERT INTO binding VALUES(1,1,'{}',x'01');"
    "INSERT INTO workload VALUES(1,x'01',x'00','',1,1,1,1.0);"
    "INSERT INTO candidate VALUES(1,1,1,1,'S1','{}',NULL);"
    "INSERT INTO run(id,binding_id,target_id,request,seed,version,host,owner,started_at)"
    " VALUES(1,1,1,'{}',0,'v','h','o',1);"
    "INSERT INTO trial(id,run_id,candidate_id,mode,attempt,outcome,median_ns,started_at)"
    " VALUES(1,1,1,'cold',1,'ok',5,1);"
    "INSERT INTO "
    "plan(id,hash,binding_id,target_id,role,strategy,window,span,saturated,status,"
    "additive_ns,bound_ns,gap,peak_bytes,body,served,created_at)"
    " VALUES(1,x'01',1,1,'tuned','ideals',16,64,0,'measured',1.0,1.0,0.0,1,'{}',1,1);"
    "INSERT INTO plan_group VALUES(1,0,1);"
    "INSERT INTO quarantine VALUES(1,'r',1,NULL,NULL);"
    "INSERT INTO artifact VALUES(x'01','source',1,x'00');"
    "INSERT INTO model VALUES(1,1,'time',1,1,1,'','',x'00',1,1);"
    "INSERT INTO job VALUES(1,'queued','{}',0,NULL,NULL,1,1);"
    "INSERT INTO best VALUES(1,1,1,'cold',1);"
    "INSERT INTO ceiling VALUES(1,'read',64,5.0,'bytes/s',4.0,9,0,1);"
    "INSERT INTO alarm VALUES(1,1,1,1,5,9.0,'read',64,1.0,2.0,1,0,1);";

Test(db_schema, rows_that_break_a_rule_are_refused) {
  static const char *const bad[] = {
      // a median of zero, and one that is missing, is no time
      "INSERT INTO trial(run_id,candidate_id,mode,attempt,outcome,median_ns,started_at)"
      " VALUES(1,1,'cold',2,'ok',0,1)",
      "INSERT INTO trial(run_id,candidate_id,mode,attempt,outcome,started_at)"
      " VALUES(1,1,'cold',2,'ok',1)",
      "UPDATE trial SET median_ns = NULL",
      // words
      "INSERT INTO trial(run_id,candidate_id,mode,attempt,outcome,started_at)"
      " VALUES(1,1,'lukewarm',1,'crash',1)",
      "INSERT INTO trial(run_id,candidate_id,mode,attempt,outcome,started_at)"
      " VALUES(1,1,'warm',1,'crashed',1)",
      "UPDATE target SET kind = 'gpu'", "UPDATE plan SET role = 'best'",
      "UPDATE plan SET status = 'guessed'", "UPDATE artifact SET kind = 'exe'",
      "UPDATE job SET state = 'lost'",
      // JSON
      "UPDATE target SET compilers = '{'", "UPDATE target SET key = 'x'",
      "UPDATE binding SET dims = '{N}'", "UPDATE candidate SET schedule = 'x'",
      "UPDATE plan SET body = 'x'",
      // types
      "UPDATE trial SET median_ns = 'fast'", "UPDATE graph SET operators = 1.5",
      "UPDATE workload SET encoding = 'text'", "UPDATE plan SET gap = NULL",
      // keys
      "INSERT INTO target SELECT 2,signature,key,name,kind,device,isa,units,threads,"
      "memory_bytes,cache_bytes,partition,power_class,driver,toolkit,compilers,libraries,"
      "numerics,ceilings,calibrated_at FROM target",
      "INSERT INTO graph VALUES(2,x'01',x'01','h',1,1)",
      "INSERT INTO binding VALUES(2,1,'{}',x'01')",
      "INSERT INTO workload VALUES(2,x'01',x'01','',1,1,1,1.0)",
      "INSERT INTO candidate VALUES(2,1,1,1,'S1','{}',NULL)",
      "INSERT INTO trial(run_id,candidate_id,mode,attempt,outcome,started_at)"
      " VALUES(1,1,'cold',1,'crash',1)",
      "INSERT INTO best VALUES(1,1,1,'cold',1)",
      "INSERT INTO quarantine VALUES(1,'r',1,NULL,NULL)",
      "INSERT INTO model VALUES(2,1,'time',1,1,1,'','',x'00',1,1)",
      "INSERT INTO plan_group VALUES(1,0,1)",
      // one served plan per binding and target
      "INSERT INTO "
      "plan(hash,binding_id,target_id,role,strategy,window,span,saturated,status,"
      "additive_ns,bound_ns,gap,peak_bytes,body,served,created_at)"
      " VALUES(x'02',1,1,'tuned','ideals',16,64,0,'measured',1.0,1.0,0.0,1,'{}',1,1)",
      // references
      "INSERT INTO binding VALUES(2,7,'{}',x'02')",
      "INSERT INTO candidate VALUES(2,7,1,1,'S1','{}',NULL)",
      "INSERT INTO trial(run_id,candidate_id,mode,attempt,outcome,started_at)"
      " VALUES(7,1,'cold',1,'crash',1)",
      "INSERT INTO ceiling VALUES(1,'read',64,5.0,'bytes/s',4.0,9,0,1)",
      "INSERT INTO ceiling VALUES(7,'read',64,5.0,'bytes/s',4.0,9,0,1)",
      "UPDATE ceiling SET value = 0.0", "UPDATE ceiling SET unit = 'miles'",
      "UPDATE alarm SET candidate_id = 7", "UPDATE alarm SET trial_id = 7",
      "INSERT INTO counter VALUES(7,'cycles',1.0,'')",
      "INSERT INTO comparison VALUES(1,0,7,1,0)",
      "INSERT INTO refusal VALUES(7,0,1,'r','d')", "DELETE FROM trial",
      "DELETE FROM target"};
  store_open();
  run_sql(rows);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    cr_assert_eq(try_sql(bad[i]) & 0xff, SQLITE_CONSTRAINT, "%s", bad[i]);
}

Test(db_schema, rows_that_break_no_rule_are_taken) {
  store_open();
  run_sql(rows);
  // counters need no time; another dims text, another bound hash: another binding
  run_sql(
      "INSERT INTO trial(run_id,candidate_id,mode,attempt,outcome,started_at)"
      " VALUES(1,1,'counters',1,'ok',1)");
  run_sql("INSERT INTO binding VALUES(2,1,'{\"N\":8}',x'01')");
  run_sql("INSERT INTO binding VALUES(3,1,'{}',x'02')");
  run_sql("INSERT INTO counter VALUES(1,'cycles',1.0,'')");
  EXPECT_SQL("ok", "PRAGMA integrity_check");
  TEST_OK(ft_store_check(store, &error));
}

static const char *const statements[] = {
#define FT_SQL(id, text) text,
#include "db/statements.def"
#undef FT_SQL
};

Test(db_schema, no_statement_reads_a_whole_table) {
  sqlite3 *db;
  store_open();
  cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
    sqlite3_stmt *row;
    if (strstr(statements[i], "/* reads all */")) continue;  // asked for by people
    const char *sql = ft_arena_printf(arena, "EXPLAIN QUERY PLAN %s", statements[i]);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK, "%s: %s", sql,
                 sqlite3_errmsg(db));
    while (sqlite3_step(row) == SQLITE_ROW) {
      const char *how = (const char *)sqlite3_column_text(row, 3);
      // Of the tables that grow; what is pending is few.
      bool scans = strncmp(how, "SCAN ", 5) == 0 && !strstr(how, "trial_pending") &&
                   !strstr(how, "sqlite_master") && !strstr(how, "(subquery");
      cr_assert(!scans, "%s: %s", statements[i], how);
    }
    sqlite3_finalize(row);
  }
  sqlite3_close(db);
}
