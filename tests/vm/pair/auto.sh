# `auto` as nfstuned measures it, against every value by hand, at three distances: a reader gets 95 % of the best. The daemon
# watches a mount that has what the helper knows without measuring, is then allowed to act, and what it writes is measured. The
# link has a rate, or the emulated processor would be the limit. Run it with CLIENT_MEMORY=4G (a client with less than 2 GB gets
# 1 MiB at most) and with the helper and its rule.
# shellcheck shell=dash
values="128 256 512 1024 2048 4096 8192 16384"
mib=32
rounds=${rounds:-3}
on_server "dd if=/dev/urandom of=/srv/a/big bs=1M count=$mib 2>/dev/null; mkdir /srv/a/small; cd /srv/a/small && touch 1 2 3 4 5 6 7 8"

# rate_of RECORD: kB/s of one reader that opens the file anew
rate_of() {
    local ms
    echo 1 >/proc/sys/vm/drop_caches
    ms=$(took_ms dd if=/mnt/x/big of=/dev/null bs="$1" 2>/dev/null)
    echo $((mib * 1048576 / ms))
}
# measure NAME: adds a line to the file of NAME, for each size of reads
measure() { for record in 64k 1M; do rate_of $record >>"/run/rate.$1.$record"; done; }
median_of() { median <"/run/rate.$1.$2"; }

auto_conf() {
    conf <<END
[nfsrahead]
nfs4 = auto
[nfstuned]
apply = $1
interval = 5
settle = 0
END
}
# Reads, and small requests, which tell how long the way is: for a few intervals.
work() {
    for _ in $(seq 4); do
        rate_of 64k >/dev/null
        for _ in $(seq 3); do
            echo 2 >/proc/sys/vm/drop_caches
            stat -t /mnt/x/small/* >/dev/null
        done
    done
}
is_set() { [ "$(cat "$knob")" != 128 ]; }

for one_way_ms in ${delays:-0 2 10}; do
    rm -f /run/rate.*
    shape 200 "$one_way_ms"
    unmount_all
    auto_conf
    systemctl daemon-reload
    systemctl start nfstuned
    from_server vers=4.2
    knob=/sys/class/bdi/$(dev_of /mnt/x)/read_ahead_kb
    holds "$one_way_ms ms: the helper sets what needs no measuring" wait_for 5 is_set
    by_helper=$(cat "$knob")
    work
    sleep 6
    is "$one_way_ms ms: nothing is written without leave" "$(cat "$knob")" "$by_helper"
    auto_conf readahead
    systemctl reload nfstuned
    # Two intervals.
    sleep 12
    auto=$(cat "$knob")
    note "$one_way_ms ms: auto is $auto KiB: $(nfstune explain /mnt/x | tr -s '\n ' ' ')"
    # The daemon goes on, for what it costs, and leaves a value that somebody else has set.
    for _ in $(seq "$rounds"); do
        for kib in $auto $values; do
            echo "$kib" >"$knob"
            measure "$kib"
        done
    done
    daemon_stop
    for record in 64k 1M; do
        got=$(median_of "$auto" $record) best=0 table=
        for kib in $values; do
            rate=$(median_of "$kib" $record)
            table="$table $kib:$rate"
            [ "$rate" -le "$best" ] || best=$rate
        done
        note "$one_way_ms ms, reads of $record, KiB:kB/s:$table auto $auto:$got"
        at_most "$one_way_ms ms, reads of $record: 95 % of the best by hand, kB/s, and what auto reaches" $((best * 95 / 100)) "$got"
    done
done
