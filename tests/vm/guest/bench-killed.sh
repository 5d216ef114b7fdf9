# kill -9 in the middle: values come back with `nfstune restore`, files and mounts go by themselves. ^C: all at once.
# shellcheck shell=dash
rule none
nfs vers=4.2 /srv/a
knobs=/sys/class/bdi/$(dev_of /mnt/x)
value() { cat "$knobs/$1"; }
differs() { [ "$(value "$1")" != "$2" ]; }
is_empty() { [ -z "$(left_in /srv/a)" ]; }
# killed SIGNAL: the last bench, and its exit code
killed() {
    kill "-$1" "$bench"
    wait "$bench"
    code=$?
}

was=$(value read_ahead_kb)
nfstune bench readahead /mnt/x --size 64M --budget 60s --values 512..4096 >/dev/null 2>&1 &
bench=$!
wait_for 40 differs read_ahead_kb "$was" || not_ok "the bench has begun"
killed KILL
holds "killed in the middle" differs read_ahead_kb "$was"
holds "the file has gone" wait_for 5 is_empty
note "$(nfstune restore)"
is "readahead is back" "$(value read_ahead_kb)" "$was"

nfstune bench readahead /mnt/x --size 64M --budget 60s --values 512..4096 >/run/partial 2>&1 &
bench=$!
wait_for 40 differs read_ahead_kb "$was" || not_ok "the bench has begun"
sleep 6
killed INT
is "stopped by ^C: exit code" "$code" 1
is "readahead is back by itself" "$(value read_ahead_kb)" "$was"
holds "what was measured is told" grep -q 'READAHEAD KIB' /run/partial
holds "the file has gone" wait_for 5 is_empty

nfstune bench write /mnt/x --size 64M --limit 8M --rounds 20 --budget 60s >/run/write 2>&1 &
bench=$!
wait_for 40 differs strict_limit 0 || not_ok "a limit is set: $(cat /run/write)"
killed KILL
note "$(nfstune restore | tr '\n' ';')"
is "the limit is back" "$(value strict_limit) $(value max_ratio_fine) $(value min_ratio_fine)" "0 1000000 0"
holds "the file has gone" wait_for 5 is_empty
umount /mnt/x

mounted() { grep -q 'v4' /proc/fs/nfsfs/servers; }
not_mounted() { ! mounted; }
nfstune bench nconnect 127.0.0.1:/srv/a --values 1,2 --budget 60s >/run/nconnect 2>&1 &
bench=$!
wait_for 40 mounted || not_ok "an export is mounted: $(cat /run/nconnect)"
sleep 2
killed KILL
holds "the mount has gone" wait_for 20 not_mounted
is "no process has it" "$(cat /proc/[0-9]*/mountinfo | grep -cE ' - nfs4? ')" 0
holds "the file has gone" wait_for 5 is_empty
