#!/bin/bash
# Train on two "machines": network namespaces with addresses of their own, joined by a veth pair.
#
# usage: bash tests/two_machines.sh PYTHON FLAG…   (flags of train.py)
# Exits with 77 and the reason where namespaces are not allowed, otherwise with the worse of the two exit codes.
set -u
cd "$(dirname "$0")/.." || exit 1
python=$1
shift
a=machine-a-$$
b=machine-b-$$

skip() {
    echo "skipped: $1" >&2
    exit 77
}

cleanup() {
    ip netns del "$a"
    ip netns del "$b"
} 2>/dev/null

machine() { # namespace, its address, its number, flags of train.py
    local space=$1 address=$2 number=$3
    shift 3
    ip -n "$space" addr add "$address/24" dev eth0 || return
    ip -n "$space" link set lo up && ip -n "$space" link set eth0 up || return
    exec ip netns exec "$space" env GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 "$python" -m torch.distributed.run \
        --nnodes 2 --nproc-per-node 1 --node-rank "$number" --master-addr 10.77.0.1 --master-port 29500 \
        train.py "$@"
}

[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "there is no command ip; it is in the package iproute2"
trap cleanup EXIT
ip netns add "$a" 2>/dev/null && ip netns add "$b" || skip "ip netns add is not allowed here"
ip link add eth0 netns "$a" type veth peer name eth0 netns "$b" 2>/dev/null || skip "veth is not allowed here"
ip netns exec "$a" true 2>/dev/null || skip "ip netns exec is not allowed here"
machine "$a" 10.77.0.1 0 "$@" &
first=$!
machine "$b" 10.77.0.2 1 "$@" &
second=$!
wait "$first"
code=$?
wait "$second"
other=$?
exit $((code > other ? code : other))
