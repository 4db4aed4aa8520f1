//! Writes down what the UPF is, while it goes on, or as the last thing that it does.
//!
//! Sessions are taken in bites. The control thread asks their shards what packets have counted; with each answer it takes N4's part of the
//! session, at that moment: so what a shard reports belongs to one of the two, and to one only. The file is written by the thread of
//! whoever asked.
//!
//! Before its last dump a UPF is held: no request is taken and no packet received, what was on its way is served, and only then is the first
//! session written down. If the dump fails it goes on, as if nothing had happened.

use super::file::{Draft, Kind, Records};
use crate::Upf;
use crate::backend::Backend;
use api::{Answers, CtlError, Dump, Dumped, ErrorCode};
use datapath::Command;
use datapath::command::Token;
use engine::Engine;
use n4::N4;
use pfcp::Seid;
use session::SessionRef;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Sessions of one order to a worker: it receives packets between any two.
const OF_AN_ORDER: usize = 16;
/// Places that are looked at in one bite: while N4 waits, and while nothing else is done.
const BITE: usize = 256;
const HELD_BITE: usize = 4_096;
/// So long workers are waited for.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// So long a UPF is held, at most: SMFs take one that says nothing for longer for gone.
const HELD_WITHIN: Duration = Duration::from_mins(1);
const NAP: Duration = Duration::from_micros(500);

/// A dump that is being made.
#[derive(Default)]
pub(crate) struct Dumping {
    /// Which one.
    running: Option<u64>,
    /// The UPF is held until then.
    held: Option<Instant>,
    /// Of dumps and bites, the number that was given last: an answer that comes late is none of another one's.
    last: u64,
    bites: Vec<Bite>,
}

/// Sessions that shards were asked for.
struct Bite {
    number: u64,
    /// Orders that are not answered.
    left: usize,
    records: Records,
    to: Sender<Records>,
}

impl Dumping {
    /// Whether no request is to be taken.
    pub const fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Anew, with nothing of what was.
    fn reset(&mut self) -> u64 {
        *self = Self { last: self.last + 1, ..Self::default() };
        self.last
    }

    /// A shard has answered: N4's part is taken now.
    pub fn exported(&mut self, n4: &N4, token: Token, sessions: Vec<(Seid, Box<[u8]>)>) {
        let Some(at) = self.bites.iter().position(|bite| bite.number == token.0) else { return };
        let Some(bite) = self.bites.get_mut(at) else { return };
        for (seid, counted) in sessions {
            // It may have been deleted meanwhile.
            let record = n4.store().get(seid).and_then(|session| n4.record(session));
            if let Some(record) = record {
                bite.records.push(&[&record, &counted]);
            }
        }
        bite.left -= 1;
        if bite.left == 0 {
            let bite = self.bites.swap_remove(at);
            // Whoever asked may have given up.
            let _ = bite.to.send(bite.records);
        }
    }

    /// Asks shards for sessions from this place on. Where to go on; `None`: these are the last.
    fn bite(
        &mut self,
        n4: &N4,
        engine: &mut Engine,
        from: SessionRef,
    ) -> (Receiver<Records>, Option<SessionRef>) {
        let most = if self.holds() { HELD_BITE } else { BITE };
        let mut places = Vec::new();
        let next = n4.store().look(from, most, |session| {
            places.push(session.rules().place);
            ControlFlow::Continue(())
        });
        self.last += 1;
        let number = self.last;
        let mut left = 0;
        for same in places.chunk_by(|one, other| one.shard == other.shard) {
            for some in same.chunks(OF_AN_ORDER) {
                let Some(first) = some.first() else { continue };
                let (token, shard, slots) =
                    (Token(number), first.shard, some.iter().map(|place| place.slot).collect());
                engine.post(shard, Command::Export { token, shard, slots });
                left += 1;
            }
        }
        engine.flush();
        let (to, records) = channel();
        if left == 0 {
            let _ = to.send(Records::default());
        } else {
            self.bites.push(Bite { number, left, records: Records::default(), to });
        }
        (records, next)
    }
}

impl Upf {
    /// Begins a dump, if none is being made.
    fn begin_dump(&mut self, hold: bool) -> Result<u64, CtlError> {
        if self.dumping.running.is_some() {
            return Err(CtlError::new(ErrorCode::Busy, "another dump is being made"));
        }
        let number = self.dumping.reset();
        self.dumping.running = Some(number);
        if hold {
            self.dumping.held = Some(Instant::now() + HELD_WITHIN);
            self.engine.rest();
            self.engine.flush();
        }
        Ok(number)
    }

    /// Those that workers have asked for. Configured ones don't need to be remembered.
    fn neighbours(&self) -> Records {
        let mut records = Records::default();
        for (interface, address, mac) in self.rib.neighbours() {
            let Some(interface) = self.rib.interfaces().get(usize::from(interface)) else { continue };
            let name = interface.name.as_bytes();
            match address {
                IpAddr::V4(address) => records.push(&[name, &address.octets(), &mac.0]),
                IpAddr::V6(address) => records.push(&[name, &address.octets(), &mac.0]),
            }
        }
        records
    }

    /// A dump is over. A UPF that was held for it goes on.
    pub(crate) fn end_dump(&mut self) {
        if self.dumping.holds() && !self.stopping {
            self.engine.wake();
            self.engine.flush();
        }
        self.dumping.reset();
    }

    /// Whoever holds the UPF may hang: on a disk, for instance.
    pub(crate) fn end_dump_that_hangs(&mut self) {
        if !self.stopping && self.dumping.held.is_some_and(|until| Instant::now() >= until) {
            tracing::error!(
                "a dump took longer than {} s: the UPF goes on without it",
                HELD_WITHIN.as_secs()
            );
            self.end_dump();
        }
    }
}

/// A dump that the control thread knows of; when it is dropped, it is over.
struct Running<'b> {
    backend: &'b Backend,
    number: u64,
}

impl<'b> Running<'b> {
    fn begin(backend: &'b Backend, hold: bool) -> Result<Self, CtlError> {
        let number = backend.ask(move |upf| upf.begin_dump(hold))?;
        let running = Self { backend, number };
        if hold {
            running.come_to_rest()?;
        }
        Ok(running)
    }

    /// Has something done for this dump.
    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Upf) -> Result<T, CtlError> + Send + 'static,
    ) -> Result<T, CtlError> {
        let number = self.number;
        self.backend.ask(move |upf| {
            if upf.dumping.running != Some(number) {
                return Err(CtlError::new(
                    ErrorCode::Failed,
                    "the dump took too long: the UPF goes on without it",
                ));
            }
            job(upf)
        })
    }

    /// Until no packet and no order is on its way.
    fn come_to_rest(&self) -> Result<(), CtlError> {
        let until = Instant::now() + ANSWERED_WITHIN;
        // See [`engine::Engine::rest`].
        for _ in 0..3 {
            let fence = self.ask(|upf| {
                let fence = upf.engine.fence();
                upf.engine.flush();
                Ok(fence)
            })?;
            self.wait(until, move |upf| upf.engine.passed(fence))?;
        }
        self.wait(until, |upf| upf.n4.pending() == 0)
    }

    fn wait(
        &self,
        until: Instant,
        is_done: impl Fn(&Upf) -> bool + Send + Copy + 'static,
    ) -> Result<(), CtlError> {
        while !self.ask(move |upf| Ok(is_done(upf)))? {
            if Instant::now() >= until {
                return Err(silent());
            }
            std::thread::sleep(NAP);
        }
        Ok(())
    }

    /// All sessions, while the next are being asked for.
    fn sessions(&self, draft: &mut Draft) -> Result<u64, CtlError> {
        let ask =
            |from: SessionRef| self.ask(move |upf| Ok(upf.dumping.bite(&upf.n4, &mut upf.engine, from)));
        let mut sessions = 0;
        let mut asked = ask(SessionRef::of(Seid(0)))?;
        loop {
            let (records, next) = asked;
            let following = next.map(ask).transpose()?;
            let records = records.recv_timeout(ANSWERED_WITHIN).map_err(|_| silent())?;
            sessions += records.count;
            draft.add(Kind::Sessions, &records)?;
            match following {
                Some(following) => asked = following,
                None => return Ok(sessions),
            }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // The UPF may have ended.
        let _ = self.ask(|upf| {
            upf.end_dump();
            Ok(())
        });
    }
}

fn silent() -> CtlError {
    CtlError::new(
        ErrorCode::Unavailable,
        "a worker does not answer: nothing was written, and the UPF goes on",
    )
}

impl Answers<Dump> for Backend {
    fn answer(&self, Dump { file, stop }: Dump) -> Result<Dumped, CtlError> {
        let path = Path::new(&file);
        if !path.is_absolute() {
            return Err(CtlError::new(
                ErrorCode::BadRequest,
                "the UPF needs the whole path of the file, from the root",
            ));
        }
        let begun = Instant::now();
        let running = Running::begin(self, stop)?;
        let (header, replies, neighbours) = running.ask(move |upf| {
            let mut replies = Records::default();
            // Of a UPF that goes on they are old before anybody repeats what they answer.
            if stop {
                upf.n4.replies().for_each(|reply| replies.push(&[&reply]));
            }
            Ok((upf.n4.header(upf.clock.now()), replies, upf.neighbours()))
        })?;
        let mut draft = Draft::create(path, &header)?;
        draft.add(Kind::Replies, &replies)?;
        draft.add(Kind::Neighbours, &neighbours)?;
        let sessions = running.sessions(&mut draft)?;
        let bytes = draft.finish()?;
        if stop {
            let ended = running.ask(|upf| {
                (upf.stopping, upf.silently) = (true, true);
                Ok(())
            });
            // It would tell of sessions as they no longer are.
            ended.inspect_err(|_| drop(std::fs::remove_file(path)))?;
            // Control does nothing more, and would have to be waited for until it is gone.
            std::mem::forget(running);
        }
        let milliseconds = begun.elapsed().as_millis() as u64;
        tracing::info!(file, sessions, bytes, milliseconds, stop, "sessions were written down");
        Ok(Dumped { file, sessions, bytes, milliseconds, stopped: stop })
    }
}
