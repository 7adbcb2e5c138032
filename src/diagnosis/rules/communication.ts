/** Ranks and nodes that do not reach each other. A peer that died shows here first, so most of these lose to a cause elsewhere. */
import { advise, type Rule, setFlag } from '../rule.ts';

/** NCCL's monitoring port: taken by another job, and harmless. */
const NOT_NCCLS_OWN = ['NCCL WARN', 'NCCL INFO', 'ras/'];

export const COMMUNICATION_RULES: readonly Rule[] = [
  {
    code: 'nccl-collective-timeout',
    title: 'a collective of NCCL timed out',
    state: 'crashed',
    weight: 'symptom',
    signs: [
      'Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}',
      'Watchdog caught collective operation timeout',
      'watchdog got stuck for {} seconds without making progress',
      'Some NCCL operations have failed or timed out',
    ],
    restartSameFlagsHelps: null,
    restartAfterStartFailed: false,
    remedy: ({ numbers }) =>
      // The process group's own first collectives: nothing has been computed yet.
      (numbers['seq'] ?? Number.POSITIVE_INFINITY) <= 5
        ? {
            flag: 'NCCL_SOCKET_IFNAME',
            value: '',
            text: 'The very first collectives never met: interfaces, firewall, or a node that was not started. Set NCCL_SOCKET_IFNAME (and NCCL_IB_HCA) on every node. A longer time-out does not help.',
          }
        : {
            flag: '',
            value: '',
            text: 'This rank is a victim: find the rank that stopped first and read its first error (look for Xid in dmesg too). Then start again.',
          },
    meaning: 'One rank waited for the others and they did not come: one of them died, hangs, or was never reachable.',
    mistakenFor: 'a slow network: the time-out is ten minutes, no collective takes that long',
    example:
      '[rank1]:[E ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81234, OpType=ALLREDUCE, NumelIn=57344, NumelOut=57344, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.',
  },
  {
    code: 'gloo-wrong-interface',
    title: 'the CPU-side process group uses a wrong network interface',
    state: 'crashed',
    weight: 'root',
    signs: [
      'Gloo connectFullMesh failed',
      'connectFullMesh failed with',
      'Unable to find address for:',
      'unsupported gloo device',
      'makeDeviceForHostname',
      'makeDeviceForInterface',
      'ifa != nullptr. Unable to find interface',
      'gloo{}connect [127.0.',
      'gloo{}Connection refused, remote=[127.',
      'Unable to find interface for',
    ],
    phase: 'distributed-init',
    restartSameFlagsHelps: false,
    remedy: setFlag(
      'GLOO_SOCKET_IFNAME',
      '',
      'Set GLOO_SOCKET_IFNAME (and NCCL_SOCKET_IFNAME, and the host’s own address: VLLM_HOST_IP or SGLANG_HOST_IP) to an interface that exists and reaches the other node, on every node; containers and Ray workers must get it too.',
    ),
    meaning: 'Gloo bound to loopback or to an interface that another node cannot reach; its message often ends in "no error".',
    mistakenFor: 'no error at all, or a firewall',
    example: 'RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error',
  },
  {
    code: 'multi-node-rendezvous-timeout',
    title: 'ranks waited at the store for ranks that never came',
    state: 'crashed',
    weight: 'symptom',
    signs: [
      'clients joined',
      'seconds waiting for clients',
      'The client socket has timed out after',
      'wait timeout after {} keys:',
      'wait timeout after {}ms',
      'The client socket has failed to connect to any network address',
      'Timed out after {} waiting for clients',
      'DistStoreError',
      'Timed out initializing process group in store based barrier',
      'waitForInput: {} timed out after {}ms',
      'failed to recv, got 0 bytes',
    ],
    phase: 'distributed-init',
    restartSameFlagsHelps: false,
    remedy: setFlag(
      '--dist-init-addr',
      '',
      'Start every node with the same address and port of the first node, each with its own --node-rank; check that the port is open between them and that the missing rank has not died (read its log).',
    ),
    meaning:
      'The ranks meet at a store on the first node. Some never connected: a node that was not started, a blocked port, a wrong address.',
    mistakenFor: 'a slow start: waiting longer does not bring a rank that was never started',
    example: 'torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.',
  },
  {
    code: 'multi-node-peer-lost',
    title: 'the link to another rank or node broke',
    state: 'crashed',
    weight: 'symptom',
    signs: [
      'ncclRemoteError',
      'remote process exited or there was a network error',
      'gloo{}Connection closed by peer',
      'gloo{}Connection reset by peer',
      'gloo{}Socket closed',
      'gloo{}Timed out waiting',
      'recvValue failed on SocketImpl',
    ],
    restartSameFlagsHelps: null,
    remedy: advise(
      'Read the log of the peer that was lost: it stopped first. If it lives, look at the link (dmesg, ethtool -S, ibstat) and start all nodes again.',
    ),
    meaning: 'A peer died or its network link broke while this rank talked to it.',
    mistakenFor: 'a fault of this node',
    example: 'ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.',
  },
  {
    code: 'multi-node-peer-lost',
    title: 'the link to another rank or node broke',
    state: 'crashed',
    weight: 'symptom',
    signs: [
      'Connection closed by remote peer',
      'NET/IB : Got completion from peer',
      'NET/IB {} Got completion {} error',
      'Connection closed by localRank',
      'Connection reset by peer',
      'sendBytes failed on SocketImpl',
      'NCCL WARN{}Broken pipe',
      'NCCL WARN{}No route to host',
    ],
    onlyIfDead: true,
    restartSameFlagsHelps: null,
    remedy: advise(
      'Read the log of the peer that was lost: it stopped first. If it lives, look at the link (dmesg, ethtool -S, ibstat) and start all nodes again.',
    ),
    meaning: 'A peer died or its network link broke while this rank talked to it.',
    mistakenFor: 'a fault of this node',
    example: 'ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.',
  },
  {
    code: 'port-in-use',
    title: 'a port is taken',
    state: 'crashed',
    weight: 'root',
    signs: [{ text: 'error while attempting to bind on address', not: ['NCCL WARN'] }, 'port {} is already allocated'],
    phase: 'http-bind',
    restartSameFlagsHelps: true,
    remedy: advise(
      'Find the holder (ss -ltnp), stop leftovers of an earlier start, or take another port: --port for HTTP; --dist-init-addr / --nccl-port (SGLang) or VLLM_PORT / MASTER_PORT (vLLM) for the rendezvous.',
    ),
    meaning:
      'The HTTP port or the rendezvous port of the ranks is already bound, often by a leftover of the last start. SGLang binds HTTP only after the whole load.',
    mistakenFor: 'a server that did start: another one answers on that port',
    example: "[Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use",
  },
  {
    code: 'port-in-use',
    title: 'a port is taken',
    state: 'crashed',
    weight: 'root',
    signs: [
      { text: 'EADDRINUSE', not: NOT_NCCLS_OWN },
      { text: 'Errno 98', not: [...NOT_NCCLS_OWN, 'error while attempting to bind'] },
      'The server socket has failed to listen on any local network address',
      'Port is already in use',
      'port {} is already in use',
      { text: 'Address already in use', not: [...NOT_NCCLS_OWN, 'error while attempting to bind'] },
    ],
    phase: 'distributed-init',
    restartSameFlagsHelps: true,
    remedy: advise(
      'Find the holder (ss -ltnp), stop leftovers of an earlier start, or take another port: --port for HTTP; --dist-init-addr / --nccl-port (SGLang) or VLLM_PORT / MASTER_PORT (vLLM) for the rendezvous.',
    ),
    meaning:
      'The HTTP port or the rendezvous port of the ranks is already bound, often by a leftover of the last start. SGLang binds HTTP only after the whole load.',
    mistakenFor: 'a server that did start: another one answers on that port',
    example:
      'torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use',
  },
  {
    code: 'ray-placement-group-unsatisfiable',
    title: 'Ray cannot place as many GPUs as were asked for',
    state: 'hung',
    weight: 'root',
    signs: [
      'exceeds available GPUs ({gpus}). This may result in Ray placement group',
      'exceeds available GPUs',
      'The current node{}placement group{}not have',
      'Waiting for creating a placement group of specs',
      'Cannot provide a placement group',
      'The number of required GPUs exceeds the total number of available GPUs in the placement group',
      'No available node types can fulfill resource request',
    ],
    phase: 'distributed-init',
    restartSameFlagsHelps: false,
    remedy: ({ numbers }) => ({
      flag: '--tensor-parallel-size',
      value: numbers['gpus'] === undefined ? '' : String(numbers['gpus']),
      text: 'Join the missing nodes to the Ray cluster first (ray status shows its GPUs), or ask for no more GPUs than it has; over nodes use --pipeline-parallel-size.',
    }),
    meaning: 'Ray waits for a placement group that the cluster can never give. Nothing fails; nothing goes on.',
    mistakenFor: 'a slow model load',
    example:
      'WARNING [ray_utils.py:352] Tensor parallel size (16) exceeds available GPUs (8). This may result in Ray placement group allocation failures.',
  },
  {
    code: 'worker-stuck-shm-broadcast',
    title: 'workers stopped answering the engine',
    state: 'crashed',
    weight: 'symptom',
    signs: [
      'RPC call to {} timed out',
      'TimeoutError: RPC call',
      'shm_broadcast.py{}in timeout_ms',
      'shm_broadcast.py{}in acquire_read',
      'shm_broadcast.py{}in dequeue',
      'shm_broadcast.py{}raise TimeoutError',
      'Timed out waiting for {} execute_model',
    ],
    phase: 'serving',
    onlyIfDead: true,
    restartSameFlagsHelps: null,
    remedy: advise(
      'Find the first error of the worker that went silent (its node’s log, dmesg for Xid, py-spy dump --pid), try --disable-custom-all-reduce or NCCL_P2P_DISABLE=1 on PCIe systems, and start again.',
    ),
    meaning:
      'vLLM’s engine talks to its workers through shared memory. A worker no longer reads or answers: it hangs in a step, or is gone.',
    mistakenFor:
      'compilation: the notice "No available shared memory broadcast block" stands in healthy starts too; only progress around it tells',
    example: 'TimeoutError: RPC call to execute_model timed out.',
  },
];
