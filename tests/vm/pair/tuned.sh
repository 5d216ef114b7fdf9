# nfstuned as its unit on a client with a memory of its own, over 100 Mbit/s: it learns how fast the server takes data, limits the
# mount, and what a new mount's first writer waits for then. The kernel guesses 100 MB/s for a new device, and takes a quarter of
# a minute of writing to unlearn that: so each run is a mount of its own. As the report of 2005 had it, with all its steps:
# --set mib=512 --set rounds=3 --set steps=yes.
# shellcheck shell=dash
shape 100 1
mib=${mib:-160}
rounds=${rounds:-2}

# measure NAME: one writer on a new mount; adds to the sums in write_ms_NAME, fsync_ms_NAME, kib_s_NAME
measure() {
    local name=$1 line one value sum
    unmount_all
    from_server vers=4.2
    # Its limits, where nfstuned has some for it.
    sleep 4
    line=$(write_file "$mib" 1024)
    note "$(printf '%-6s %s' "$name" "$line")"
    [ -z "${steps:-}" ] || note "$name, ms of each hundredth: $(head -n 1 /run/steps)"
    for one in write_ms fsync_ms kib_s; do
        value=$(field $one "$line")
        eval "sum=\${${one}_$name:-0}"
        eval "${one}_$name=$((sum + value))"
    done
}
tuned() {
    daemon_start <<END
[nfstuned]
apply = $1
interval = 5
settle = 0
END
}
is_limited() { [ "$(cat "/sys/class/bdi/$(dev_of /mnt/x)/strict_limit")" = 1 ]; }
vm_is_ours() { [ "$(cat /proc/sys/vm/dirty_bytes)" != 0 ]; }

from_server vers=4.2
if has_bdi_limits; then applies="bdi vm"; else applies=vm; fi
stock_vm=$(vm_knobs)

for _ in $(seq "$rounds"); do measure stock; done

note "learning"
tuned "${applies%% *}"
# Seven intervals of writing.
write_file 450 1024 >/dev/null
holds "the server's rate is known" grep -q 10.0.2.1 /var/lib/nfstuned/learned.json
note "$(tr -d '\n ' </var/lib/nfstuned/learned.json)"
daemon_stop

for apply in $applies; do
    note "apply = $apply"
    tuned "$apply"
    if [ "$apply" = bdi ]; then holds "limited" wait_for 15 is_limited; else holds "limited" wait_for 15 vm_is_ours; fi
    if [ "$apply" = bdi ]; then note "limits: $(knobs /mnt/x)"; else note "limits: $(vm_knobs)"; fi
    for _ in $(seq "$rounds"); do measure "$apply"; done
    # In the middle of a run.
    write_file "$mib" 1024 >/dev/null &
    sleep 5
    daemon_kill
    vm_is_stock() { [ "$(vm_knobs)" = "$stock_vm" ]; }
    limits_are_stock() { [ "$(knobs /mnt/x)" = "1000000 0 0 " ]; }
    if [ "$apply" = bdi ]; then
        holds "killed in the middle of a run: limits are back" wait_for 3 limits_are_stock
    else
        holds "killed in the middle of a run: limits are back" wait_for 3 vm_is_stock
    fi
    wait $!
    daemon_stop
done

# Sums over the rounds. The longest write() of one round varies by a half; the data left for fsync and close does not.
for apply in $applies; do
    eval "write_ms=\$write_ms_$apply fsync_ms=\$fsync_ms_$apply kib_s=\$kib_s_$apply"
    # shellcheck disable=SC2154 # measure and eval set them
    {
        note "$apply: longest write() $((100 * write_ms / write_ms_stock)) %, fsync $((100 * fsync_ms / fsync_ms_stock)) %, rate $((100 * kib_s / kib_s_stock)) % of stock's"
        # The kernel follows a lowered limit of the machine slowly: what a first writer waits for then is luck.
        [ "$apply" = vm ] || at_most "$apply: longest write(), ms: 0.9 of stock" "$write_ms" $((write_ms_stock * 9 / 10))
        at_most "$apply: fsync, ms: 0.7 of stock" "$fsync_ms" $((fsync_ms_stock * 7 / 10))
        at_most "$apply: 0.85 of stock's rate, KiB/s: reached" $((kib_s_stock * 85 / 100)) "$kib_s"
    }
done
