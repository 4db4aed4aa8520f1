//! How workers start: where their state is made, and what stops them.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use crate::rig::{N3_MAC, N6_MAC, network, wait};
use engine::{Engine, EngineConfig, EngineError};
use io::mem::{MemConfig, MemFrame, MemNic, MemPool, MemRx, MemTx};
use io::{Port, PortInfo, PortStats, RedirectError, Redirection};
use packet::MacAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tables::clock::Tsc;

type Diary = Arc<Mutex<Vec<String>>>;

fn note(diary: &Diary, what: &str) {
    let thread = std::thread::current();
    diary.lock().unwrap().push(format!("{}: {what}", thread.name().unwrap_or_default()));
}

/// A NIC that notes who changes its redirection table.
struct Noting(MemNic, Diary);

struct NotingTable(Box<dyn Redirection>, Diary);

impl Redirection for NotingTable {
    fn redirect(&mut self, entries: &[u16], queue: u16) -> Result<(), RedirectError> {
        note(&self.1, &format!("{} shards", entries.len()));
        self.0.redirect(entries, queue)
    }
    fn settled(&mut self) -> bool {
        self.0.settled()
    }
}

impl Port for Noting {
    type Frame = MemFrame;
    type Rx = MemRx;
    type Tx = MemTx;
    type Pool = MemPool;

    fn info(&self) -> &PortInfo {
        self.0.info()
    }
    fn take_queue(&mut self, queue: u16) -> Option<(MemRx, MemTx)> {
        self.0.take_queue(queue)
    }
    fn pool(&mut self, queue: u16) -> MemPool {
        self.0.pool(queue)
    }
    fn link_up(&self) -> bool {
        self.0.link_up()
    }
    fn stats(&self) -> PortStats {
        self.0.stats()
    }
    fn redirection(&mut self) -> Option<Box<dyn Redirection>> {
        let table = self.0.redirection()?;
        Some(Box::new(NotingTable(table, self.1.clone())))
    }
}

fn nic(mac: MacAddr) -> MemNic {
    MemNic::new(MemConfig { mac, queues: 2, ..MemConfig::default() }).unwrap().0
}

fn start<P: Port<Rx: 'static, Tx: 'static, Pool: 'static> + 'static>(
    ports: &mut [P],
    config: &EngineConfig,
) -> Result<Engine, EngineError> {
    Engine::start(ports, config, &datapath::Config::new(network().fib()), Tsc::process())
}

/// Pinned, then greeted, then furnished: in its own thread, before `start` returns.
#[test]
fn a_worker_makes_its_state_in_its_own_thread() {
    let diary = Diary::default();
    let core = *engine::placement::available_cores().last().unwrap();
    let greeted = diary.clone();
    let config = EngineConfig {
        cores: vec![Some(core); 2],
        on_thread_start: Arc::new(move || {
            assert_eq!(engine::placement::available_cores(), [core]);
            note(&greeted, "greeted");
            Box::new(())
        }),
        ..EngineConfig::default()
    };
    let mut ports = [N3_MAC, N6_MAC].map(|mac| Noting(nic(mac), diary.clone()));
    let engine = start(&mut ports, &config).unwrap();
    let of = |worker| ["greeted", "256 shards", "256 shards"].map(|what| format!("worker-{worker}: {what}"));
    assert_eq!(*diary.lock().unwrap(), [of(0), of(1)].concat());
    let shards: Vec<_> = engine.stop().unwrap().iter().map(|report| report.shards).collect();
    assert_eq!(shards, [256, 256]);
}

/// The second worker can't start: the reason comes back, and the first one ends by itself.
#[test]
fn what_keeps_a_worker_from_starting_is_an_error_and_the_others_end() {
    struct Alive(Arc<AtomicUsize>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let alive = Arc::new(AtomicUsize::new(0));
    let config = |last, dies: bool| {
        let alive = alive.clone();
        EngineConfig {
            cores: vec![None, last],
            on_thread_start: Arc::new(move || {
                let dead = dies && alive.load(Ordering::SeqCst) == 1;
                assert!(!dead, "the second one dies, as the test wants it");
                alive.fetch_add(1, Ordering::SeqCst);
                Box::new(Alive(alive.clone()))
            }),
            ..EngineConfig::default()
        }
    };
    let ports = || [nic(N3_MAC), nic(N6_MAC)];
    match start(&mut ports(), &config(Some(1_000_000), false)).err() {
        Some(error @ EngineError::Pin { worker: 1, core: 1_000_000, .. }) => {
            assert!(error.to_string().contains("choose from the cores"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    wait("the first worker's end", || alive.load(Ordering::SeqCst) == 0);
    let error = start(&mut ports(), &config(None, true)).err();
    assert!(matches!(error, Some(EngineError::WorkerDead(1))), "{error:?}");
    wait("the first worker's end", || alive.load(Ordering::SeqCst) == 0);
}
