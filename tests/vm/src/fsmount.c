/*
 * fsmount SOURCE OPTIONS TARGET SECONDS
 *
 * Mounts NFSv4 in the two steps that mount(8) makes in one. The superblock, and with it the backing device and its event,
 * is there SECONDS ahead of the mount; its device on standard output says when. TARGET "-": it goes without ever being mounted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void check(long result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "fsmount: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: fsmount SOURCE OPTIONS TARGET SECONDS\n");
        return 2;
    }
    int context = (int)syscall(SYS_fsopen, "nfs4", 0);
    check(context, "fsopen");
    check(syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "source", argv[1], 0), argv[1]);
    for (char *option = strtok(argv[2], ","); option; option = strtok(NULL, ",")) {
        char *value = strchr(option, '=');
        if (value)
            *value++ = '\0';
        check(syscall(SYS_fsconfig, context, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, option, value, 0), option);
    }
    check(syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0), "create");
    int mount = (int)syscall(SYS_fsmount, context, 0, 0);
    check(mount, "fsmount");
    struct stat status;
    check(fstat(mount, &status), "fstat");
    printf("%u:%u\n", major(status.st_dev), minor(status.st_dev));
    fflush(stdout);
    usleep((useconds_t)(atof(argv[4]) * 1e6));
    if (strcmp(argv[3], "-") != 0)
        check(syscall(SYS_move_mount, mount, "", AT_FDCWD, argv[3], MOVE_MOUNT_F_EMPTY_PATH), argv[3]);
    return 0;
}
