# What a writer waits for, over 100 Mbit/s: the longest write() of a new mount's first writer, and the data that is still to be
# sent when it calls fsync or close. With the kernel's limits, with the machine's set by hand, with the mount's own set by hand.
# shellcheck shell=dash
shape 100 1
mib=160

# measure NAME COMMAND...: one writer on a new mount, after COMMAND; adds to the sums in write_ms_NAME, fsync_ms_NAME, kib_s_NAME
measure() {
    local name=$1 line one value sum
    shift
    fresh_mount
    "$@"
    line=$(write_file $mib 1024)
    note "$(printf '%-6s %s' "$name" "$line")"
    for one in write_ms fsync_ms kib_s; do
        value=$(field $one "$line")
        eval "sum=\${${one}_$name:-0}"
        eval "${one}_$name=$((sum + value))"
    done
}
mount_limits() { bdi_limits /mnt/x "$1" $(($1 * 9 / 10)); }

fresh_mount
if has_bdi_limits; then mine=mount_limits; else mine=vm_limits; fi
for round in 1 2; do
    note "round $round"
    measure stock :
    measure limit $mine 16384
done
# shellcheck disable=SC2154 # measure sets them
{
    at_most "longest write(), ms in $round rounds: at most 0.7 of stock" "$write_ms_limit" $((write_ms_stock * 7 / 10))
    at_most "fsync, ms: at most 0.5 of stock" "$fsync_ms_limit" $((fsync_ms_stock / 2))
    at_most "0.85 of stock's rate, KiB/s: reached" $((kib_s_stock * 85 / 100)) "$kib_s_limit"
}
