#!/usr/bin/env bash
# The study of this folder on Slurm: cd examples/study; sbatch slurm.sh plan.yaml
# All nodes need the same Python environment with botyard[ray,studies] at the same path, and this folder on a shared disk.
# Not tried here: only its syntax is checked.
#SBATCH --job-name=study
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --time=08:00:00
set -euo pipefail

plan=${1:-plan.yaml}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(getent ahostsv4 "$head" | awk 'NR == 1 { print $1 }'):6379

# Who reaches a cluster of Ray runs code on it: only tasks that know this word do.
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0

# Starts Ray on all nodes, the study on the first one when all are there, and stops Ray behind it.
# --resume: a job that was requeued goes on where it was.
srun ray symmetric-run --address "$address" --min-nodes "$SLURM_JOB_NUM_NODES" --num-cpus "$SLURM_CPUS_PER_TASK" -- \
  botyard study "$plan" --ray "$address" --resume
