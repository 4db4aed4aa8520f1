//! Questions that only workers can answer. The control thread passes them on, and passes on what comes back; whoever asks waits for it on a thread of
//! his own. So N4 waits for nobody.

use datapath::NeighbourSight;
use datapath::command::{Command, SessionSnapshot, Token};
use engine::Engine;
use session::SessionRef;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Tokens from here on are inspections'; N4's count from 1.
const INSPECTIONS: u64 = 1 << 63;
/// Inspections under way, at most. Beyond, the oldest is given up: as if no worker answered.
const MOST: usize = 256;
/// So long a worker is waited for.
const WITHIN: Duration = Duration::from_secs(1);

/// What is under way.
#[derive(Default)]
pub(super) struct Inspections {
    last: u64,
    /// By token.
    waiting: BTreeMap<u64, Waiting>,
}

/// Some of a worker's neighbours, and where it goes on.
type Seen = (Box<[NeighbourSight]>, Option<u32>);

enum Waiting {
    Session(Sender<Option<Box<SessionSnapshot>>>),
    /// Of so many workers more.
    Neighbours(usize, Sender<Seen>),
}

impl Inspections {
    /// Whether a worker's answer is to one of these.
    pub const fn has(token: Token) -> bool {
        token.0 & INSPECTIONS != 0
    }

    fn begin(&mut self, waiting: Waiting) -> Token {
        self.last += 1;
        let token = Token(INSPECTIONS | self.last);
        self.waiting.insert(token.0, waiting);
        while self.waiting.len() > MOST {
            self.waiting.pop_first();
        }
        token
    }

    /// A session's owner has answered.
    pub fn session(&mut self, token: Token, session: Option<Box<SessionSnapshot>>) {
        if let Some(Waiting::Session(to)) = self.waiting.remove(&token.0) {
            // Whoever asked may have given up.
            let _ = to.send(session);
        }
    }

    /// A worker has told some of its neighbours.
    pub fn neighbours(&mut self, token: Token, seen: Box<[NeighbourSight]>, next: Option<u32>) {
        let Some(Waiting::Neighbours(left, to)) = self.waiting.get_mut(&token.0) else { return };
        *left = left.saturating_sub(1);
        let gone = to.send((seen, next)).is_err();
        if *left == 0 || gone {
            self.waiting.remove(&token.0);
        }
    }
}

/// Who waits for a session's owner.
pub(super) struct OfSession(Receiver<Option<Box<SessionSnapshot>>>);

impl OfSession {
    /// The session as its shard has it; `None`: it is gone, or the worker doesn't answer.
    pub fn wait(self) -> Option<Box<SessionSnapshot>> {
        self.0.recv_timeout(WITHIN).ok().flatten()
    }
}

/// Who waits for all workers.
pub(super) struct OfWorkers {
    workers: usize,
    seen: Receiver<Seen>,
}

impl OfWorkers {
    /// Some of the neighbours that workers know, and where to go on. `None`: a worker doesn't answer.
    pub fn wait(self) -> Option<(Vec<NeighbourSight>, Option<u32>)> {
        let until = Instant::now() + WITHIN;
        let (mut all, mut next) = (Vec::new(), None::<u32>);
        for _ in 0..self.workers {
            let left = until.saturating_duration_since(Instant::now());
            let (seen, on) = self.seen.recv_timeout(left).ok()?;
            all.extend(seen);
            next = next.into_iter().chain(on).min();
        }
        Some((all, next))
    }
}

impl Inspections {
    /// Asks the shard about a session.
    pub fn of_session(&mut self, engine: &mut Engine, session: SessionRef) -> OfSession {
        let (to, answer) = channel();
        let token = self.begin(Waiting::Session(to));
        engine.post(session.shard, Command::Inspect { token, session });
        engine.flush();
        OfSession(answer)
    }

    /// Asks workers for some of the neighbours that they know, from these places of theirs on.
    pub fn of_workers(&mut self, engine: &mut Engine, from: u32) -> OfWorkers {
        let workers = (0..engine.workers()).filter(|worker| engine.is_alive(*worker)).count();
        let (to, seen) = channel();
        let token = self.begin(Waiting::Neighbours(workers, to));
        engine.broadcast(|| Command::Neighbours { token, from });
        engine.flush();
        OfWorkers { workers, seen }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_nobody_answers_is_given_up_and_does_not_pile_up() {
        let mut inspections = Inspections::default();
        let mut askers = Vec::new();
        for _ in 0..2 * MOST {
            let (to, answer) = channel();
            askers.push((inspections.begin(Waiting::Session(to)), OfSession(answer)));
        }
        assert_eq!(inspections.waiting.len(), MOST);
        assert!(askers.iter().all(|(token, _)| Inspections::has(*token)));
        // At once, not after a second: nobody can answer any more.
        let (first, answer) = askers.remove(0);
        inspections.session(first, None);
        assert!(matches!(answer.0.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected)));
        let (last, answer) = askers.pop().unwrap();
        inspections.session(last, None);
        assert!(matches!(answer.0.try_recv(), Ok(None)));
        assert_eq!(inspections.waiting.len(), MOST - 1);
    }

    #[test]
    fn neighbours_are_told_when_all_workers_have() {
        let mut inspections = Inspections::default();
        let (to, seen) = channel();
        let token = inspections.begin(Waiting::Neighbours(3, to));
        for next in [Some(7), None, Some(5)] {
            inspections.neighbours(token, Box::default(), next);
        }
        assert!(inspections.waiting.is_empty());
        assert_eq!(OfWorkers { workers: 3, seen }.wait().unwrap().1, Some(5));
    }
}
