//! Goes on with what another process wrote down, before the first packet and the first request are taken.

use super::file::{FileError, Kind, Saved, records};
use crate::{Upf, UpfError, direct};
use datapath::command::{Command, Event, Token};
use engine::Engine;
use packet::MacAddr;
use pfcp::Seid;
use session::portable::Unportable;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Orders that workers have not answered.
const WINDOW: u64 = 4_096;
/// So long a worker is waited for that answers nothing.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// How often the log says how far it is.
const TELL: Duration = Duration::from_secs(1);
/// Sessions that can't go on are named in the log, so many of them.
const NAMED: u64 = 10;

/// What became of sessions.
#[derive(Default)]
struct Progress {
    posted: u64,
    answered: u64,
    /// They count from zero.
    without_counters: u64,
    refused: u64,
    /// Workers had no room for them.
    no_room: Vec<Seid>,
}

impl Progress {
    /// Takes what workers have answered.
    fn take(&mut self, engine: &mut Engine) -> bool {
        let before = self.answered;
        engine.drain(|_, event| match event {
            Event::Restored { whole, .. } => {
                self.answered += 1;
                self.without_counters += u64::from(!whole);
            }
            Event::Refused { token, .. } => {
                self.answered += 1;
                self.no_room.push(Seid(token.0));
            }
            // No packet is received yet, and nothing else was ordered.
            _ => {}
        });
        self.answered > before
    }

    /// Until no more than so many orders are unanswered.
    fn wait(&mut self, engine: &mut Engine, most: u64) -> Result<(), UpfError> {
        let mut heard = Instant::now();
        engine.flush();
        while self.posted - self.answered > most {
            if self.take(engine) {
                heard = Instant::now();
            } else if let Some(worker) = engine.lost() {
                return Err(UpfError::WorkerLost(worker));
            } else if heard.elapsed() >= ANSWERED_WITHIN {
                return Err(UpfError::RestoreStands);
            }
            engine.flush();
            std::thread::yield_now();
        }
        Ok(())
    }

    fn refuse(&mut self, why: &Unportable) {
        self.refused += 1;
        if self.refused <= NAMED {
            tracing::warn!(%why, "a session can't go on");
        }
    }
}

impl Upf {
    /// Takes over what is in the file, which is moved out of the way then, and has workers receive packets.
    pub(crate) fn restore(&mut self, saved: &Saved) -> Result<(), UpfError> {
        let begun = Instant::now();
        let now = self.clock.now();
        let mut told = begun;
        let mut progress = Progress::default();
        let mut failed: Result<(), UpfError> = Ok(());
        let (mut replies, mut neighbours) = (Vec::new(), Vec::new());
        let Self { n4, engine, .. } = self;
        {
            let mut blocks = saved.blocks()?;
            let mut ready: std::vec::IntoIter<(Vec<u8>, Box<[u8]>)> = Vec::new().into_iter();
            let sessions = std::iter::from_fn(|| {
                loop {
                    if let Some(record) = ready.next() {
                        return Some(record);
                    }
                    // It was looked through before; what is wrong now happened since.
                    match blocks.next().ok()?? {
                        (kind @ Kind::Sessions, octets) => {
                            let record =
                                |parts: Vec<&[u8]>| Some(((*parts.first()?).into(), (*parts.get(1)?).into()));
                            let block: Vec<_> =
                                records(kind, octets)?.into_iter().filter_map(record).collect();
                            ready = block.into_iter();
                        }
                        (kind @ Kind::Replies, octets) => {
                            replies.extend(records(kind, octets)?.into_iter().flatten().map(Vec::from));
                        }
                        (kind @ Kind::Neighbours, octets) => {
                            neighbours
                                .extend(records(kind, octets)?.iter().filter_map(|parts| neighbour(parts)));
                        }
                        (Kind::Header | Kind::End, _) => return None,
                    }
                }
            });
            n4.restore(now, &saved.header, sessions, |counted, restored| {
                let (rules, directory) = match restored {
                    Ok(restored) => restored,
                    Err(why) => return progress.refuse(&why),
                };
                let (token, shard) = (Token(rules.seid.0), rules.place.shard);
                engine.post(shard, Command::Restore { token, rules, counted });
                for change in directory {
                    engine.broadcast(|| direct(change));
                }
                progress.posted += 1;
                if failed.is_ok() && progress.posted - progress.answered >= 2 * WINDOW {
                    failed = progress.wait(engine, WINDOW);
                }
                if told.elapsed() >= TELL {
                    told = Instant::now();
                    tracing::info!(sessions = progress.posted, of = saved.sessions, "restoring");
                }
            });
        }
        failed?;
        progress.wait(engine, 0)?;
        for seid in &progress.no_room {
            n4.give_up(*seid);
        }
        replies.iter().for_each(|reply| {
            n4.keep_reply(reply);
        });
        neighbours.into_iter().for_each(|neighbour| self.remember(neighbour));
        self.wait_for_workers()?;
        let Progress { posted, without_counters, refused, no_room, .. } = progress;
        if posted + refused < saved.sessions {
            return Err(FileError::Damaged { path: saved.path().to_owned(), at: 0 }.into());
        }
        // It is taken over once: the next time it would tell of sessions as they no longer are, and have their usage charged again.
        let mut used = saved.path().as_os_str().to_owned();
        used.push(".restored");
        if let Err(error) = std::fs::rename(saved.path(), &used) {
            let file = saved.path().display();
            tracing::error!(%file, %error, "restored: the file can't be renamed; take it away, it must not be restored again");
        }
        self.engine.wake();
        self.engine.flush();
        let left_out = refused + no_room.len() as u64;
        let milliseconds = begun.elapsed().as_millis() as u64;
        let sessions = self.n4.store().counts().sessions;
        let associations = saved.header.associations();
        tracing::info!(
            sessions,
            associations,
            milliseconds,
            "restored: the UPF goes on with what another process had"
        );
        for name in self.n4.store().config().applications.undetected().take(NAMED as usize) {
            let application = String::from_utf8_lossy(name);
            tracing::warn!(%application, "restored: rules ask for an application that nobody detects here, and match nothing");
        }
        if left_out > 0 {
            tracing::error!(
                sessions = left_out,
                "restored: these sessions can't go on here, and their SMFs believe that they do"
            );
        }
        if without_counters > 0 {
            tracing::error!(sessions = without_counters, "restored: these sessions count from zero");
        }
        Ok(())
    }

    /// A neighbour is taken to be where it was, until it is asked; so what is sent to it needs not wait.
    fn remember(&mut self, (name, address, mac): (String, IpAddr, MacAddr)) {
        let Some(at) = self.rib.interfaces().iter().position(|interface| interface.name == name) else {
            return;
        };
        let interface = at as u16;
        self.rib.learn(interface, address, mac);
        self.engine.broadcast(|| Command::Neighbour { interface, address, mac, confirmed: false });
    }

    /// Until workers have done all that they were told.
    fn wait_for_workers(&mut self) -> Result<(), UpfError> {
        let fence = self.engine.fence();
        self.engine.flush();
        let until = Instant::now() + ANSWERED_WITHIN;
        while !self.engine.passed(fence) {
            if Instant::now() >= until {
                return Err(UpfError::RestoreStands);
            }
            self.engine.drain(|_, _| {});
            self.engine.flush();
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// Interface, address and MAC address.
fn neighbour(parts: &[&[u8]]) -> Option<(String, IpAddr, MacAddr)> {
    let [name, address, mac] = parts else { return None };
    let address = match address.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(*address).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(*address).ok()?),
    };
    Some((String::from_utf8(name.to_vec()).ok()?, address, MacAddr((*mac).try_into().ok()?)))
}
