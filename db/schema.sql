-- The store's file format, user_version 2. Each table, column, unit and key is documented
-- here and nowhere else; db/ builds this text into the program and runs it on a new file.
--
-- On open: busy_timeout first, then foreign_keys=ON, WAL, synchronous=NORMAL.
-- Units: *_ns are nanoseconds, *_bytes bytes, *_at nanoseconds since 1970 (UTC); a uint64 is
-- stored as SQLite's signed 64-bit INTEGER (a seed keeps its bits, times stay below 2^63).
-- Hashes are SHA-256, 32 bytes. NULL means unknown, a third state beside match and mismatch.
-- To change it: edit this file, raise FT_STORE_VERSION, add the step to db/store_open.c.

-- A device with its software. |key| is what |signature| is the hash of (graph/target.h).
CREATE TABLE target(
  id INTEGER PRIMARY KEY,
  signature BLOB NOT NULL UNIQUE,
  key TEXT NOT NULL CHECK(json_valid(key)),
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK(kind IN('cpu','cuda','arch')),
  device TEXT NOT NULL,
  isa TEXT NOT NULL,
  units INTEGER,
  threads INTEGER,
  memory_bytes INTEGER,
  cache_bytes INTEGER,
  partition TEXT,            -- MIG slice
  power_class TEXT,          -- power limit, or huge pages and governor
  driver TEXT,
  toolkit TEXT,
  compilers TEXT NOT NULL CHECK(json_valid(compilers)),  -- {"clang-14":"14.0.6"}
  libraries TEXT NOT NULL,
  numerics TEXT NOT NULL,
  ceilings TEXT NOT NULL CHECK(json_valid(ceilings)),    -- unused: table ceiling has them
  calibrated_at INTEGER      -- when its ceilings were last measured
) STRICT;

-- The best a target was ever seen to do (graph/ceilings.def has the kinds).
CREATE TABLE ceiling(
  target_id INTEGER NOT NULL REFERENCES target,
  kind TEXT NOT NULL,
  bytes INTEGER NOT NULL,    -- touched in all; 0 = the kind has no size
  value REAL NOT NULL CHECK(value > 0),  -- the best ever
  unit TEXT NOT NULL CHECK(unit IN('bytes/s','flops/s','ns')),
  median REAL NOT NULL,      -- of the last measurement
  samples INTEGER NOT NULL,  -- taken so far
  raised INTEGER NOT NULL,   -- 1 = value is what a trial showed (table alarm)
  measured_at INTEGER NOT NULL,
  PRIMARY KEY(target_id, kind, bytes)
) STRICT, WITHOUT ROWID;

-- A model without its dims bound, names and weights. |hash| is the hash of |encoding|; a hit
-- compares the encoding byte for byte.
CREATE TABLE graph(
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  encoding BLOB NOT NULL,
  name TEXT,                 -- of the first model that had this graph
  operators INTEGER NOT NULL,
  primitives INTEGER NOT NULL
) STRICT;

-- A graph with its dims bound; |hash| covers the primitives with concrete shapes. It is not
-- unique alone: a model exported with N=8 and one bound to N=8 have the same primitives.
CREATE TABLE binding(
  id INTEGER PRIMARY KEY,
  graph_id INTEGER NOT NULL REFERENCES graph,
  dims TEXT NOT NULL CHECK(json_valid(dims)),  -- {"N":8}: sorted, compact; plans that keep
                             -- to constraints have {"#constraints":{..},"N":8}
  hash BLOB NOT NULL,
  UNIQUE(graph_id, dims, hash)
) STRICT;

-- A canonical group with its shapes and dtypes. A hit compares the encoding byte for byte.
CREATE TABLE workload(
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  encoding BLOB NOT NULL,
  skeletons TEXT NOT NULL,   -- tactics that have a candidate here, space-separated
  primitives INTEGER NOT NULL,
  read_bytes INTEGER NOT NULL,
  write_bytes INTEGER NOT NULL,
  flops REAL NOT NULL
) STRICT;

-- A workload, a tactic and a schedule on a target. |body_hash|: the kernel's text, once known.
CREATE TABLE candidate(
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES workload,
  target_id INTEGER NOT NULL REFERENCES target,
  codegen_version INTEGER NOT NULL,
  tactic TEXT NOT NULL,
  schedule TEXT NOT NULL CHECK(json_valid(schedule)),  -- sorted, compact
  body_hash BLOB,
  UNIQUE(workload_id, target_id, codegen_version, tactic, schedule)
) STRICT;
CREATE INDEX candidate_body ON candidate(target_id, body_hash);

-- Bytes by content, compressed by zlib. |size| is the size before compression.
CREATE TABLE artifact(
  hash BLOB PRIMARY KEY,
  kind TEXT NOT NULL CHECK(kind IN('source','cubin','so','log')),
  size INTEGER NOT NULL,
  zbytes BLOB NOT NULL
) STRICT;

-- One compiler run. outcome: as trial.outcome. Resources NULL = the compiler did not say.
CREATE TABLE build(
  id INTEGER PRIMARY KEY,
  body_hash BLOB NOT NULL,
  target_id INTEGER NOT NULL REFERENCES target,
  compiler TEXT NOT NULL,
  flags TEXT NOT NULL,
  outcome TEXT NOT NULL,
  source_hash BLOB REFERENCES artifact,
  binary_hash BLOB REFERENCES artifact,
  log_hash BLOB REFERENCES artifact,
  registers INTEGER,
  spill_store_bytes INTEGER,
  spill_load_bytes INTEGER,
  stack_bytes INTEGER,
  shared_bytes INTEGER,
  max_threads INTEGER,
  occupancy REAL,
  build_ns INTEGER NOT NULL,
  expires_at INTEGER,
  UNIQUE(body_hash, target_id, compiler, flags)
) STRICT;

-- One tuning run. |owner| (db/owner.h) says which process may have pending trials.
CREATE TABLE run(
  id INTEGER PRIMARY KEY,
  job_id INTEGER,
  binding_id INTEGER NOT NULL REFERENCES binding,
  target_id INTEGER NOT NULL REFERENCES target,
  request TEXT NOT NULL,     -- JSON: model, budget, window, ...
  seed INTEGER NOT NULL,
  version TEXT NOT NULL,
  host TEXT NOT NULL,
  owner TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  stop_reason TEXT
) STRICT;

-- One measured candidate; written 'pending' before it runs.
CREATE TABLE trial(
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run,
  candidate_id INTEGER NOT NULL REFERENCES candidate,
  build_id INTEGER REFERENCES build,
  mode TEXT NOT NULL CHECK(mode IN('cold','warm','counters')),
  attempt INTEGER NOT NULL,
  outcome TEXT NOT NULL CHECK(outcome IN('pending','ok','wrong_result','compile_error',
    'launch_error','crash','timeout','out_of_memory','resource_limit','beaten','unstable',
    'interrupted')),
  median_ns INTEGER,         -- of the unflagged samples
  low_ns INTEGER,            -- 95 % interval of the median
  high_ns INTEGER,
  samples INTEGER NOT NULL DEFAULT 0,  -- unflagged ones; the blobs hold all
  sample_ns BLOB,            -- uint64 little-endian each
  sample_flags BLOB,         -- one byte each: bit 0 warm-up, 1 preempted, 2 drift, 3 foreign
  predicted_ns REAL,
  roofline_ns REAL,
  error TEXT,
  max_error_ratio REAL,      -- error over tolerance; NULL = not checked
  worst TEXT,
  limit_ns INTEGER,
  env TEXT,                  -- JSON: clocks, flushed bytes, load, threads
  counters_absent TEXT,      -- why there are no counters
  started_at INTEGER NOT NULL,
  ended_at INTEGER,          -- NULL while pending, and when nobody saw the end
  UNIQUE(run_id, candidate_id, mode, attempt),
  CHECK(outcome <> 'ok' OR mode = 'counters' OR ifnull(median_ns, 0) > 0)
) STRICT;
CREATE INDEX trial_best ON trial(candidate_id, mode, median_ns) WHERE outcome = 'ok';
CREATE INDEX trial_candidate ON trial(candidate_id);
CREATE INDEX trial_pending ON trial(run_id) WHERE outcome = 'pending';

-- The fastest OK trial of a workload, kept by the writer, so that it is one point read.
-- Quarantined candidates are not in it.
CREATE TABLE best(
  workload_id INTEGER NOT NULL REFERENCES workload,
  target_id INTEGER NOT NULL REFERENCES target,
  codegen_version INTEGER NOT NULL,
  mode TEXT NOT NULL,
  trial_id INTEGER NOT NULL REFERENCES trial,
  PRIMARY KEY(workload_id, target_id, codegen_version, mode)
) STRICT, WITHOUT ROWID;

CREATE TABLE counter(
  trial_id INTEGER NOT NULL REFERENCES trial ON DELETE CASCADE,
  name TEXT NOT NULL,
  value REAL NOT NULL,
  unit TEXT NOT NULL,
  PRIMARY KEY(trial_id, name)
) STRICT, WITHOUT ROWID;

-- A trial that was faster than its bound, and the ceiling that was raised for it.
CREATE TABLE alarm(
  id INTEGER PRIMARY KEY,
  run_id INTEGER REFERENCES run,
  candidate_id INTEGER NOT NULL REFERENCES candidate,
  trial_id INTEGER REFERENCES trial,
  median_ns INTEGER NOT NULL,
  bound_ns REAL NOT NULL,
  kind TEXT NOT NULL,        -- of the ceiling, as ceiling.kind
  bytes INTEGER NOT NULL,
  value_before REAL NOT NULL,
  value_after REAL NOT NULL,
  remeasured INTEGER NOT NULL,  -- 1 = all ceilings were measured anew,
  explained INTEGER NOT NULL,   -- 1 = and that alone brought the bound down
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX alarm_candidate ON alarm(candidate_id);

-- Candidates not to run. A crash, wrong result or launch error counts two strikes, the first
-- timeout in a run counts one (and a clean end takes it back); from two on it is not tried
-- again. A candidate hangs on its target and codegen version, so strikes end with them.
CREATE TABLE quarantine(
  candidate_id INTEGER PRIMARY KEY REFERENCES candidate,
  reason TEXT NOT NULL,
  strikes INTEGER NOT NULL,
  until_at INTEGER,          -- NULL = for ever
  reported_by TEXT
) STRICT;

-- A saved plan; |body| is its canonical JSON (docs/plan_format.md), |hash| its plan_id.
CREATE TABLE plan(
  id INTEGER PRIMARY KEY,
  hash BLOB NOT NULL,
  run_id INTEGER REFERENCES run,
  binding_id INTEGER NOT NULL REFERENCES binding,
  target_id INTEGER NOT NULL REFERENCES target,
  role TEXT NOT NULL CHECK(role IN('tuned','unfused','primitive','greedy','baseline','kbest')),
  strategy TEXT NOT NULL,
  window INTEGER NOT NULL,
  span INTEGER NOT NULL,
  saturated INTEGER NOT NULL,
  status TEXT NOT NULL CHECK(status IN('measured','predicted')),
  additive_ns REAL NOT NULL,
  bound_ns REAL NOT NULL,
  gap REAL NOT NULL,
  e2e_median_ns INTEGER,     -- end to end; NULL = not measured
  e2e_low_ns INTEGER,
  e2e_high_ns INTEGER,
  e2e_samples INTEGER,
  peak_bytes INTEGER NOT NULL,
  body TEXT NOT NULL CHECK(json_valid(body)),
  served INTEGER NOT NULL DEFAULT 0,
  pinned INTEGER NOT NULL DEFAULT 0,
  quarantined TEXT,          -- why it is not served any more
  created_at INTEGER NOT NULL,
  UNIQUE(binding_id, target_id, hash, role)
) STRICT;
CREATE UNIQUE INDEX plan_served ON plan(binding_id, target_id) WHERE served = 1;

CREATE TABLE plan_group(
  plan_id INTEGER NOT NULL REFERENCES plan ON DELETE CASCADE,
  position INTEGER NOT NULL,
  candidate_id INTEGER NOT NULL REFERENCES candidate,
  PRIMARY KEY(plan_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX plan_group_candidate ON plan_group(candidate_id);  -- what a quarantine touches

-- One interleaved end-to-end run of a plan. flags: as trial.sample_flags.
CREATE TABLE comparison(
  run_id INTEGER NOT NULL REFERENCES run,
  round INTEGER NOT NULL,
  plan_id INTEGER NOT NULL REFERENCES plan,
  time_ns INTEGER NOT NULL,
  flags INTEGER NOT NULL,
  PRIMARY KEY(run_id, round, plan_id)
) STRICT, WITHOUT ROWID;

-- Why two neighbouring primitives cannot share a kernel.
CREATE TABLE refusal(
  run_id INTEGER NOT NULL REFERENCES run,
  producer INTEGER NOT NULL,
  consumer INTEGER NOT NULL,
  rule TEXT NOT NULL,
  detail TEXT NOT NULL,
  PRIMARY KEY(run_id, producer, consumer)
) STRICT, WITHOUT ROWID;

-- A trained predictor; at most one active per target and head.
CREATE TABLE model(
  id INTEGER PRIMARY KEY,
  target_id INTEGER NOT NULL REFERENCES target,
  head TEXT NOT NULL,
  feature_version INTEGER NOT NULL,
  codegen_version INTEGER NOT NULL,
  rows INTEGER NOT NULL,
  training_set TEXT NOT NULL,
  metrics TEXT NOT NULL,
  body BLOB NOT NULL,
  active INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX model_active ON model(target_id, head) WHERE active = 1;

CREATE TABLE job(
  id INTEGER PRIMARY KEY,
  state TEXT NOT NULL
    CHECK(state IN('queued','running','paused','done','failed','cancelled')),
  request TEXT NOT NULL,
  priority INTEGER NOT NULL,
  run_id INTEGER REFERENCES run,
  error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
