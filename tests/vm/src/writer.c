/*
 * writer FILE MIB KIB [sync]
 *
 * Writes FILE anew, MIB mebibytes in calls of KIB kibibytes, and says how long that kept it waiting. First line: the
 * milliseconds of each hundredth of the file. Second line: NAME=VALUE of the longest call and step, of fsync (if asked for) and
 * close, of all together, the calls that took longer than 0.2 s, and the rate over all in KiB/s.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void check(long result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "writer: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    long mib = argc > 3 ? atol(argv[2]) : 0;
    long kib = argc > 3 ? atol(argv[3]) : 0;
    if (mib <= 0 || kib <= 0) {
        fprintf(stderr, "usage: writer FILE MIB KIB [sync]\n");
        return 2;
    }
    size_t size = (size_t)kib << 10;
    char *buffer = malloc(size);
    if (!buffer)
        return 1;
    memset(buffer, 0x5a, size);
    int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    check(file, argv[1]);

    double start = now_ms(), step_start = start, longest_write = 0, longest_step = 0;
    long calls = mib * 1024 / kib, slow = 0, percent = 0;
    for (long call = 1; call <= calls; call++) {
        double before = now_ms();
        ssize_t written = write(file, buffer, size);
        check(written == (ssize_t)size ? 0 : -1, "write");
        double after = now_ms();
        if (after - before > longest_write)
            longest_write = after - before;
        slow += after - before > 200;
        if (call * 100 / calls == percent)
            continue;
        percent = call * 100 / calls;
        if (after - step_start > longest_step)
            longest_step = after - step_start;
        printf("%.0f ", after - step_start);
        step_start = after;
    }
    double written = now_ms();
    if (argc > 4)
        check(fsync(file), "fsync");
    double synced = now_ms();
    check(close(file), "close");
    double closed = now_ms();
    printf("\nwrite_ms=%.0f step_ms=%.0f fsync_ms=%.0f close_ms=%.0f total_ms=%.0f slow=%ld kib_s=%.0f\n", longest_write,
           longest_step, synced - written, closed - synced, closed - start, slow, (double)(mib * 1024) / (closed - start) * 1e3);
    return 0;
}
