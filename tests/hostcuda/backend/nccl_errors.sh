#!/usr/bin/env bash
# What NCCL answers comes with what mostly helps; messages of options name the section that the user wrote.
. "$SODET_SOURCE/tests/hostcuda/backend/lib"
small="$tiny backbone.width=0.1 --max-steps 2"
fails() { HC_FAIL=$1 run train "$ini" $small run.devices=cuda_host:0,1 run.output=a; checks=$((checks + 1)); [ "$code" -ne 0 ] || bad "it should have failed"; }
fails ncclCommInitRankConfig:1:2; is_code 2
for part in "joining the group of devices: NCCL: " "NCCL_DEBUG=INFO names the call of the system" "/dev/shm" "--shm-size=1g" "NCCL_SOCKET_IFNAME=eth0"; do err_has "$part"; done
fails ncclCommInitRankConfig:2:1; err_has "NCCL_DEBUG=INFO names the call of CUDA"
fails ncclCommInitRankConfig:1:6; err_has "another rank or the network between them failed"
fails ncclCommInitRankConfig:1:3; err_has "; NCCL_DEBUG=INFO says more"
fails ncclGetUniqueId:1:2; err_has "NCCL_SOCKET_IFNAME"
HC_CUDNN_WITHOUT=0,70 run train "$ini" $small run.devices=cuda_host run.output=b
is_code 2; err_has "[backend.cuda_host] tf32 = yes"
finish 17
