/* t_files.c: files that appear whole or not at all, folders, and the clock. */
#include "base/base.h"
#include "own_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(files_appear_whole)
{
    char *data = NULL;
    size_t n = 9;
    const char *path = in_folder("a");
    CHECK(mc_file_read(path, &data, &n) == MC_EFILE && !data && n == 0, "read what is not there");
    CHECK(strstr(mc_last_error(), path) && strstr(mc_last_error(), "No such file"), "%s", mc_last_error());
    CHECK(mc_file_write(path, "one", 3) == MC_OK, "%s", mc_last_error());
    CHECK(mc_file_write_pieces(path, (struct mc_piece[]){ { "a\0", 2 }, { NULL, 0 }, { "b", 1 } }, 3) ==
              MC_OK,
          "%s", mc_last_error());
    CHECK(mc_file_read(path, &data, &n) == MC_OK && n == 3 && memcmp(data, "a\0b", 4) == 0, "%zu bytes", n);
    mc_free(data);
    CHECK(mc_file_write(path, "", 0) == MC_OK && mc_file_read(path, &data, &n) == MC_OK && n == 0 &&
              *data == '\0',
          "empty file");
    mc_free(data);
    CHECK(mc_file_read("/proc/self/status", &data, &n) == MC_OK && n > 100 && strlen(data) == n,
          "a file of unknown size");
    mc_free(data);
    CHECK(mc_file_write("/nowhere/a", "x", 1) == MC_EFILE, "wrote into no folder");
    CHECK(strcmp(mc_last_error(), "cannot create '/nowhere/a': No such file or directory") == 0, "%s",
          mc_last_error());
    CHECK(mc_file_read(folder, &data, &n) == MC_EFILE, "read a folder");
    drop_folder();
}

/* A pipe or a device stays what it is, a link a link. */
TEST(what_is_no_file_is_not_replaced)
{
    char got[4] = "", *data = NULL, pipe_path[PATH_MAX], link_path[PATH_MAX];
    size_t n = 0;
    struct stat st;
    snprintf(pipe_path, sizeof pipe_path, "%s", in_folder("pipe"));
    snprintf(link_path, sizeof link_path, "%s", in_folder("link"));
    REQUIRE(mkfifo(pipe_path, 0600) == 0 && symlink("target", link_path) == 0 &&
                mc_file_write(in_folder("target"), "old", 3) == MC_OK,
            "%s", strerror(errno));
    const int end = open(pipe_path, O_RDWR | O_NONBLOCK);
    CHECK(mc_file_write(pipe_path, "abc", 3) == MC_OK && read(end, got, 3) == 3 && strcmp(got, "abc") == 0,
          "%s", mc_last_error());
    CHECK(lstat(pipe_path, &st) == 0 && S_ISFIFO(st.st_mode), "a pipe was replaced");
    CHECK(mc_file_write(link_path, "new!", 4) == MC_OK && lstat(link_path, &st) == 0 && S_ISLNK(st.st_mode),
          "a link was replaced");
    CHECK(mc_file_read(in_folder("target"), &data, &n) == MC_OK && n == 4, "%zu bytes behind the link", n);
    mc_free(data);
    close(end);
    drop_folder();
}

TEST(a_write_that_fails_leaves_nothing)
{
    const char *path = in_folder("taken");
    REQUIRE(mc_dir_make(in_folder("taken/inside")) == MC_OK, "%s", mc_last_error());
    CHECK(mc_file_write(path, "x", 1) == MC_EFILE, "a file in place of a folder");
    char command[200];
    snprintf(command, sizeof command, "test \"$(ls -A %s)\" = taken", folder);
    CHECK(system(command) == 0, "something was left behind");
    drop_folder();
}

TEST(folders_are_made_with_their_parents)
{
    struct stat st;
    const char *path = in_folder("a/b//c/");
    CHECK(mc_dir_make(path) == MC_OK && stat(path, &st) == 0 && S_ISDIR(st.st_mode), "%s", mc_last_error());
    CHECK(mc_dir_make(path) == MC_OK, "%s", mc_last_error());
    CHECK(mc_file_write(in_folder("f"), "x", 1) == MC_OK, "%s", mc_last_error());
    CHECK(mc_dir_make(in_folder("f")) == MC_EFILE && mc_dir_make(in_folder("f/g")) == MC_EFILE,
          "a file is a folder");
    drop_folder();
}

TEST(the_clock_goes_forward)
{
    double a = mc_now(), b = mc_now();
    CHECK(b >= a && b - a < 60, "from %g to %g", a, b);
}
