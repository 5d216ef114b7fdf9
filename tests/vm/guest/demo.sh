# What the values are good for: reading over a link with 2 ms of delay each way, mounted without the rule and with it.
# shellcheck shell=dash
conf <<'CONF'
[nfsrahead]
nfs = 4M
nfs4 = 15*rsize
[nfsrahead "/mnt/media"]
nfs4 = 16384
CONF
mib=64
for export in a b; do dd if=/dev/zero of=/srv/$export/big bs=1M count=$mib 2>/dev/null; done

# mbs FILE: MB/s of a sequential read, the better of two
mbs() {
    local ms
    for _ in 1 2; do
        echo 1 >/proc/sys/vm/drop_caches
        ms=$(took_ms dd if="$1" of=/dev/null bs=64k 2>/dev/null)
        echo $((mib * 1048576 / ms / 1000))
    done | sort -n | tail -n 1
}

# reason MOUNT_POINT: the last column of the helper's own table
reason() { "$helper" --dry-run "$1" | awk 'NR == 1 { at = index($0, "WHY") } NR == 2 { print substr($0, at) }'; }

mount_all() {
    nfs vers=3 /srv/a /mnt/v3
    nfs vers=4.2 /srv/a /mnt/v4
    nfs vers=4.2 /srv/b /mnt/media/films
}
mounts="/mnt/v3 /mnt/v4 /mnt/media/films"

# look: for each mount its value and speed, a line each
look() {
    local mnt
    mount_all
    settle
    delay 2
    for mnt in $mounts; do echo "$(value "$mnt") $(mbs "$mnt/big")"; done
    delay 0
}
rule none
look >/run/before
unmount_all
rule ours
look >/run/after

note "$(printf '%-18s %-5s %15s %15s' '' '' 'read_ahead_kb' 'read, MB/s')"
note "$(printf '%-18s %-5s %7s %7s %7s %7s  %s' mount vers before after before after from)"
paste -d' ' /run/before /run/after >/run/both
for mnt in $mounts; do
    read -r was was_speed is is_speed
    vers=$(sed -n "s,.* $mnt .*[ \,]vers=\([0-9.]*\).*,\1,p" /proc/mounts)
    note "$(printf '%-18s %-5s %7s %7s %7s %7s  %s' "$mnt" "$vers" "$was" "$is" "$was_speed" "$is_speed" \
        "$(reason "$mnt")")"
    at_most "$mnt: readahead before, below that after" "$was" $((is - 1))
    at_most "$mnt: 1.3 times the speed before, reached after" $((was_speed * 13 / 10)) "$is_speed"
done </run/both
rm /srv/a/big /srv/b/big
