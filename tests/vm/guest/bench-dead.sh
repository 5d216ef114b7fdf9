# The server goes away in the middle: the bench ends by itself, says so, and the values are back.
# shellcheck shell=dash
rule none
second_server_up
mkdir -p /mnt/x && mount -t nfs -o vers=4.2 10.9.0.2:/srv/a /mnt/x
knob=/sys/class/bdi/$(dev_of /mnt/x)/read_ahead_kb
was=$(cat "$knob")
has_begun() { [ "$(cat "$knob")" != "$was" ]; }
nfstune bench readahead /mnt/x --size 32M --budget 30s --values 512..4096 >/run/said 2>&1 &
bench=$!
wait_for 40 has_begun || not_ok "the bench has begun"
sleep 2
ip link set veth-client down
wait "$bench"
is "exit code" "$?" 1
holds "the dead server is named as the cause" grep -q 'no answer from the server' /run/said
holds "what was measured is told" grep -q 'READAHEAD KIB' /run/said
is "the value is as it was" "$(cat "$knob")" "$was"
ip link set veth-client up
# What is left of the process closes its files when the connection has found its way back.
holds "with the server back nothing holds the mount" wait_for 150 umount /mnt/x
second_server_down
