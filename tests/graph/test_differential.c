// Our reader of ONNX files against protobuf-c with ONNX's own schema.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/data.h"

#ifdef FT_HAVE_PROTOBUF_C

#include <ftw.h>
#include <onnx-ml.pb-c.h>
#include <stdio.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/rng.h"
#include "graph/onnx.h"

enum { MAX_FILES = 4096, MUTATIONS = 10000, MAX_MUTATED_BYTES = 64 << 10 };

static char *paths[MAX_FILES];
static int path_count;

static int add_path(const char *path, const struct stat *st, int type,
                    struct FTW *where) {
  (void)st, (void)where;
  size_t length = strlen(path);
  bool is_model = type == FTW_F && length > 5 && strcmp(path + length - 5, ".onnx") == 0;
  if (is_model && path_count < MAX_FILES) paths[path_count++] = strdup(path);
  return 0;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

// Debian's data folder is a symbolic link, so links are followed.
static void find_models(void) {
  const char *data = test_data_folder();
  if (data) nftw(data, add_path, 16, 0);
  nftw("/usr/lib/python3/dist-packages/onnx/backend/test/data", add_path, 16, 0);
  nftw(FT_SOURCE_DIR "/examples", add_path, 16, 0);
  qsort(paths, (size_t)path_count, sizeof *paths, by_name);
}

// ---- agreement ----------------------------------------------------------------------

static bool same(ft_span ours, const char *theirs) {
  size_t length = theirs ? strlen(theirs) : 0;
  return ours.size == length && (length == 0 || memcmp(ours.data, theirs, length) == 0);
}

static bool same_domain(ft_span ours, const char *theirs) {
  return same(ours, theirs) ||
         (ours.size == 0 && theirs && strcmp(theirs, "ai.onnx") == 0);
}

static const char *compare_node(const ft_onnx_node *a, const Onnx__NodeProto *b) {
  if (!same(a->op, b->op_type) || !same(a->name, b->name) ||
      !same_domain(a->domain, b->domain))
    return "operator, domain or name of a node";
  if (a->input_count != b->n_input || a->output_count != b->n_output ||
      a->attribute_count != b->n_attribute)
    return "operands or attributes of a node";
  for (uint32_t i = 0; i < a->input_count; i++)
    if (!same(a->input[i], b->input[i])) return "an input of a node";
  for (uint32_t i = 0; i < a->output_count; i++)
    if (!same(a->output[i], b->output[i])) return "an output of a node";
  for (uint32_t i = 0; i < a->attribute_count; i++) {
    const ft_onnx_attribute *attribute = &a->attribute[i];
    if (!same(attribute->name, b->attribute[i]->name)) return "an attribute's name";
    if (b->attribute[i]->has_type && attribute->type != (int64_t)b->attribute[i]->type)
      return "an attribute's type";
    if (b->attribute[i]->has_i && attribute->i != b->attribute[i]->i)
      return "an attribute's integer";
  }
  return NULL;
}

static const char *compare_graph(const ft_onnx_model *a, const Onnx__GraphProto *b) {
  if (a->node_count != b->n_node) return "number of nodes";
  if (a->initializer_count != b->n_initializer) return "number of initializers";
  if (a->input_count != b->n_input) return "number of inputs";
  if (a->output_count != b->n_output) return "number of outputs";
  if (a->sparse_count != b->n_sparse_initializer) return "sparse initializers";
  for (uint32_t i = 0; i < a->node_count; i++) {
    const char *difference = compare_node(&a->node[i], b->node[i]);
    if (difference) return difference;
  }
  for (uint32_t i = 0; i < a->initializer_count; i++)
    if (!same(a->initializer[i].name, b->initializer[i]->name))
      return "an initializer's name";
  for (uint32_t i = 0; i < a->input_count; i++)
    if (!same(a->input[i].name, b->input[i]->name)) return "an input's name";
  for (uint32_t i = 0; i < a->output_count; i++)
    if (!same(a->output[i].name, b->output[i]->name)) return "an output's name";
  return NULL;
}

static const char *compare_model(const ft_onnx_model *a, const Onnx__ModelProto *b) {
  if (!b->graph) return "there is no graph";
  if (a->ir_version != b->ir_version) return "IR version";
  if (a->opset_count != b->n_opset_import) return "number of opsets";
  for (uint32_t i = 0; i < a->opset_count; i++)
    if (a->opset[i].version != b->opset_import[i]->version) return "an opset";
  return compare_graph(a, b->graph);
}

typedef struct verdict {
  bool ours, theirs;
  const char *difference;  // static; NULL when both accept and agree
  ft_error error;
} verdict;

static verdict judge(const void *data, size_t size) {
  verdict v = {0};
  ft_arena *arena = ft_arena_create(ft_allocator_system());
  ft_onnx_model model;
  v.ours = ft_onnx_open((ft_span){data, size}, arena, &model, &v.error) == FT_OK;
  Onnx__ModelProto *theirs = onnx__model_proto__unpack(NULL, size, data);
  v.theirs = theirs != NULL;
  if (v.ours && v.theirs) v.difference = compare_model(&model, theirs);
  if (theirs) onnx__model_proto__free_unpacked(theirs, NULL);
  ft_arena_destroy(arena);
  return v;
}

Test(graph_differential, every_model_at_hand_reads_the_same_with_protobuf_c,
     .timeout = 120) {
  find_models();
  if (path_count == 0) cr_skip_test("no models at hand");
  int agreed = 0;
  for (int i = 0; i < path_count; i++) {
    ft_arena *arena = ft_arena_create(ft_allocator_system());
    ft_bytes file;
    ft_error error;
    cr_assert_eq(ft_file_read(paths[i], 1u << 30, arena, &file, &error), FT_OK, "%s",
                 error.text);
    verdict v = judge(file.data, file.size);
    cr_assert_eq(v.ours, v.theirs, "%s: ours %d, protobuf-c %d: %s", paths[i], v.ours,
                 v.theirs, v.error.text);
    cr_assert_null(v.difference, "%s: %s differ", paths[i], v.difference);
    agreed += v.ours;
    ft_arena_destroy(arena);
  }
  fprintf(stderr, "%d models, %d accepted by both\n", path_count, agreed);
}

// ---- mutations ------------------------------------------------------------------------

// One to four small damages: bits, bytes, cuts, repeats. The size never grows.
static size_t mutate(uint8_t *data, size_t size, ft_rng *rng) {
  uint64_t times = 1 + ft_rng_below(rng, 4);
  for (uint64_t t = 0; t < times && size > 1; t++) {
    size_t at = ft_rng_below(rng, size), other = ft_rng_below(rng, size);
    size_t room = size - (at > other ? at : other);
    size_t run = ft_rng_below(rng, room < 16 ? room + 1 : 16);
    switch (ft_rng_below(rng, 5)) {
      case 0:
        data[at] ^= (uint8_t)(1u << ft_rng_below(rng, 8));
        break;
      case 1:
        data[at] = (uint8_t)ft_rng_u64(rng);
        break;
      case 2:
        size = ft_rng_below(rng, 8) ? size : at;
        break;
      case 3:
        memmove(data + at, data + other, run);
        break;
      default:
        memmove(data + at, data + at + 1, size - at - 1);
        size--;
    }
  }
  return size;
}

Test(graph_differential, nothing_that_protobuf_c_rejects_is_accepted, .timeout = 240) {
  find_models();
  if (path_count == 0) cr_skip_test("no models at hand");
  ft_rng rng = ft_rng_seed(3);
  uint8_t *data = malloc(MAX_MUTATED_BYTES);
  int both = 0, neither = 0, ours_refused = 0;
  for (int done = 0; done < MUTATIONS;) {
    const char *path = paths[ft_rng_below(&rng, (uint64_t)path_count)];
    ft_arena *arena = ft_arena_create(ft_allocator_system());
    ft_bytes file;
    ft_error error;
    if (ft_file_read(path, MAX_MUTATED_BYTES, arena, &file, &error) == FT_OK &&
        file.size > 0) {
      memcpy(data, file.data, file.size);
      verdict v = judge(data, mutate(data, file.size, &rng));
      cr_assert(!v.ours || v.theirs, "mutation %d of %s: protobuf-c rejects it", done,
                path);
      cr_assert_null(v.difference, "mutation %d of %s: %s differ", done, path,
                     v.difference);
      both += v.ours;
      neither += !v.ours && !v.theirs;
      ours_refused += !v.ours && v.theirs;
      done++;
    }
    ft_arena_destroy(arena);
  }
  free(data);
  fprintf(stderr, "%d accepted by both, %d rejected by both, %d only by us\n", both,
          neither, ours_refused);
  cr_assert_gt(both, MUTATIONS / 10);
  cr_assert_gt(neither, MUTATIONS / 10);
}

#else

Test(graph_differential, protobuf_c_and_onnx_ml_proto_are_here) {
  const char *require = getenv("FT_REQUIRE_DATA");
  cr_assert(!require || strcmp(require, "1") != 0,
            "FT_REQUIRE_DATA=1, but built without protobuf-c: scripts/deps.sh");
  cr_skip_test("built without protobuf-c or onnx-ml.proto (scripts/deps.sh)");
}

#endif
