#include "db/owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct owner {
  char boot[40];
  unsigned long long space, start;
  int pid;
} owner;

static size_t read_text(const char *path, char *out, size_t size) {
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  size_t length = fread(out, 1, size - 1, file);
  fclose(file);
  out[length] = '\0';
  return length;
}

// State letter and start time of |pid|: fields 3 and 22 of /proc/PID/stat. The name
// (field 2) may hold spaces and parentheses, so fields are counted from the last ')'.
static bool read_process(int pid, char *state, unsigned long long *start) {
  char path[48], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  if (read_text(path, text, sizeof text) == 0) return false;
  char *field = strrchr(text, ')');
  if (!field || sscanf(field + 1, " %c", state) != 1) return false;
  for (int number = 2; number < 22; number++) {
    field = strchr(field + 1, ' ');
    if (!field) return false;
  }
  return sscanf(field, "%llu", start) == 1;
}

static bool parse(const char *text, owner *out) {
  int end = 0;
  return sscanf(text, "%39[^:]:%llu:%d:%llu%n", out->boot, &out->space, &out->pid,
                &out->start, &end) == 4 &&
         text[end] == '\0';
}

ft_status ft_owner_self(char out[FT_OWNER_TEXT], ft_error *error) {
  owner self = {.pid = (int)getpid()};
  char space[64] = "", state;
  if (read_text("/proc/sys/kernel/random/boot_id", self.boot, sizeof self.boot) == 0 ||
      readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0 ||
      sscanf(space, "pid:[%llu]", &self.space) != 1 ||
      !read_process(self.pid, &state, &self.start))
    FT_FAIL(error, FT_UNAVAILABLE, "cannot read /proc: is it mounted?");
  self.boot[strcspn(self.boot, "\n")] = '\0';
  snprintf(out, FT_OWNER_TEXT, "%s:%llu:%d:%llu", self.boot, self.space, self.pid,
           self.start);
  return FT_OK;
}

ft_owner_state ft_owner_look(const char *text, const char *self_text) {
  owner it, self;
  if (!parse(text, &it) || !parse(self_text, &self)) return FT_OWNER_UNKNOWN;
  if (strcmp(it.boot, self.boot) != 0) return FT_OWNER_DEAD;
  if (it.space != self.space) return FT_OWNER_UNKNOWN;
  char state;
  unsigned long long start;
  if (!read_process(it.pid, &state, &start) || start != it.start) return FT_OWNER_DEAD;
  return state == 'Z' || state == 'X' ? FT_OWNER_DEAD : FT_OWNER_ALIVE;
}
