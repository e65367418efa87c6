#include "codegen/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum { OLD_S = 3600 };

static bool is_abandoned(const char *path, const char *name) {
  int pid;
  unsigned serial;
  char rest;
  struct stat info;
  if (sscanf(name, "tmp-%d-%u%c", &pid, &serial, &rest) != 2 || pid <= 0) return false;
  if (lstat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  if (time(NULL) - info.st_mtime < OLD_S) return false;
  return kill(pid, 0) != 0 && errno == ESRCH;
}

static int remove_entry(const char *path, const struct stat *info, int type,
                        struct FTW *where) {
  (void)info;
  (void)type;
  (void)where;
  return remove(path);
}

void ft_cache_sweep(const char *folder) {
  DIR *dir = opendir(folder);
  if (!dir) return;
  for (struct dirent *entry; (entry = readdir(dir));) {
    char path[4400];
    int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (length < (int)sizeof path && is_abandoned(path, entry->d_name))
      (void)nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
  }
  closedir(dir);
}
