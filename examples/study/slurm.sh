#!/usr/bin/env bash
# The study of this folder on Slurm: cd examples/study; sbatch slurm.sh plan.yaml
# All nodes need the same Python environment with botyard[ray,studies] at the same path, and this folder on a shared disk.
# The job's status is that of the study: 1 when some runs are not ok. What Ray says goes to ray-JOB-NODE.txt.
#SBATCH --job-name=study
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --mem=0
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --time=08:00:00
set -euo pipefail

plan=${1:-plan.yaml}
# This script runs on the first node. Where nodes reach each other by another of its addresses, name that one.
address=$(hostname -I | awk '{ print $1 }'):6379

# Who reaches a cluster of Ray runs code on it: only tasks that know this word do.
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0

# Ray on every node, in the background: Slurm ends it with the job. srun does not know --cpus-per-task of the job (since 22.05).
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" --output="ray-$SLURM_JOB_ID-%N.txt" bash -c '
  if [ "$SLURMD_NODENAME" = "$0" ]; then
    exec ray start --head --node-ip-address="${1%:*}" --port="${1##*:}" --num-cpus="$SLURM_CPUS_PER_TASK" --block
  fi
  until ray health-check --address "$1"; do sleep 1; done
  exec ray start --address="$1" --num-cpus="$SLURM_CPUS_PER_TASK" --block
' "$SLURMD_NODENAME" "$address" &
until ray health-check --address "$address" 2> /dev/null; do
  kill -0 $! # this script ends where that has
  sleep 1
done

# Nodes that come later get runs, too. --resume: a job that was requeued goes on where it was.
botyard study "$plan" --ray "$address" --resume
