# The answer of the bench against a sweep by hand, over a link with delay: it is as good as the best, and it is the same twice.
# The link has a rate too, and so the best that can be had: the emulated processor's would be another one every second.
# shellcheck shell=dash
values="128 256 512 1024 2048 4096 8192 16384"
mib=32
rule none
dd if=/dev/urandom of=/srv/a/big bs=1M count=$mib 2>/dev/null
nfs vers=4.2 /srv/a
tc qdisc replace dev lo root netem delay 10ms rate 200mbit limit 100000
knob=/sys/class/bdi/$(dev_of /mnt/x)/read_ahead_kb
was=$(cat "$knob")

# by_hand KIB: kB/s of the file with reads of 64 KiB, the cache of all files dropped
by_hand() {
    local ms
    echo "$1" >"$knob"
    echo 1 >/proc/sys/vm/drop_caches
    ms=$(took_ms dd if=/mnt/x/big of=/dev/null bs=64k 2>/dev/null)
    echo $((mib * 1048576 / ms))
}
all_by_hand() { for kib in $values; do echo "$kib $(by_hand "$kib")"; done; }
thrice all_by_hand >/run/hand
echo "$was" >"$knob"
rm /srv/a/big
for kib in $values; do
    echo "$kib $(sed -n "s/^$kib //p" /run/hand | median)"
done >/run/medians
note "by hand, KiB and kB/s: $(tr '\n' ',' </run/medians)"
best=$(sort -k2 -n /run/medians | tail -n 1 | cut -d' ' -f2)

# bench N. A machine that is busy with other things makes noise, and the bench says so: then again.
bench() {
    local tries=2
    while [ $tries -gt 0 ] && one_bench "$1" && is_loud "$1"; do tries=$((tries - 1)); done
    ! is_loud "$1" || { skip "the machine is too busy for a measurement" && exit; }
}
answer() { echo $(($(field read_ahead_bytes "$1") / 1024)); }
field() { sed -n "s/^  \"$1\": \([0-9.]*\).*/\1/p" "/run/bench.$2"; }
is_loud() { field noise "$1" | awk '{ exit !($1 > 0.05) }'; }
one_bench() {
    nfstune bench readahead /mnt/x --size 32M --budget 120s --json --report "/run/report.$1.html" >"/run/bench.$1" ||
        not_ok "bench $1 came to its end"
}
step() { echo "$values" | tr ' ' '\n' | grep -nx "$1" | cut -d: -f1; }
bench 1
bench 2
first=$(answer 1)
second=$(answer 2)
for n in 1 2; do
    note "bench $n: $(sed -n 's/^  "conclusion": "\(.*\)",/\1/p' "/run/bench.$n")"
    note "bench $n: largest against 128 KiB: $(field largest_to_smallest $n) times, noise $(field noise $n)"
done
apart=$(($(step "$first") - $(step "$second")))
at_most "twice the same answer, steps apart ($first, $second KiB)" ${apart#-} 1
for kib in "$first" "$second"; do
    got=$(sed -n "s/^$kib //p" /run/medians)
    at_most "97 % of the best by hand ($best kB/s) are reached with $kib KiB, kB/s" $((best * 97 / 100)) "$got"
done
gain=$(field gain 1)
at_most "the knee is worth its while: twice the speed of 128 KiB, at least" 2 "${gain%.*}"
is "the value is as it was" "$(cat "$knob")" "$was"
is "nothing is left in the export" "$(left_in /srv/a)" ""
holds "there is a page" grep -q '<svg' /run/report.1.html
