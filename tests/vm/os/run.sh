# What vmtest.service runs once the system is up.
# shellcheck shell=dash
stty -F /dev/ttyS1 raw -echo
if [ "$(sed -n 's/.*vmpair=\([^ ]*\).*/\1/p' /proc/cmdline)" = yes ]; then
    . /vm/pair.sh
    join_server
    run_tests /vm/pair.sh 1400
else
    . /vm/os.sh
    run_tests /vm/os.sh 800
fi
systemctl poweroff --force
