//! Who looks into packets: inspection (crate `dpi`) behind the datapath's question.
//!
//! **What is found.** An application of the signatures that are in force, or one that an SMF has described by PFDs. PFDs come first, and where there are some for
//! an application, what signatures say of it doesn't count (TS 23.503 §6.1.2.3.2).
//!
//! **What is shared.** What is known ([`Known`]) never changes: another one takes its place when SMFs send PFDs. Each shard's room holds the one that it
//! has seen last, and looks at a number, which all of them share, whether there is another one; only then it takes the lock.

mod kin;
mod provisioned;

use datapath::Places;
use datapath::inspect::{Budget, Direction, Inspection, Inspector, Payload, Verdict, Why};
use dpi::classify::{Confidence, Desk, Evidence};
use dpi::conversation::{Conversation, Standing, Surroundings};
use dpi::signatures::{Bundle, LoadError};
use dpi::{Knowledge, Packet};
use kin::Kin;
use packet::IpProtocol;
use provisioned::Provisioned;
use session::applications::{Applications, Lineage};
use session::pfd::Pfds;
use session::rules::Application;
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tables::Nanos;

/// What is known, and in which version. Both ends of it: whoever asks, and whoever has new PFDs.
#[derive(Clone, Debug)]
pub struct Detector {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    version: AtomicU64,
    known: Mutex<Arc<Known>>,
}

/// What is known at a time.
#[derive(Debug)]
struct Known {
    knowledge: Arc<Knowledge>,
    /// By the signatures' number of an application, the number that rules have for it.
    numbers: Arc<[Application]>,
    kin: Kin,
    provisioned: Arc<Provisioned>,
    /// Applications that have PFDs: signatures don't count for them.
    overridden: Arc<HashSet<Application>>,
    /// Of signatures: numbers that were found with others mean nothing.
    generation: u64,
}

/// What is built in, with these files over it.
fn bundle(files: &[PathBuf]) -> Result<Arc<Bundle>, LoadError> {
    let built_in = Bundle::built_in();
    if files.is_empty() {
        return Ok(built_in);
    }
    let paths: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
    Ok(Arc::new(built_in.with_files(&paths)?.bundle))
}

impl Detector {
    /// What the configuration asks for; `None`: nobody looks into packets. Applications get their names from it.
    pub fn new(
        config: &config::InspectionSection,
        applications: &mut Applications,
    ) -> Result<Option<Self>, LoadError> {
        if !config.enabled {
            return Ok(None);
        }
        let known = Known::new(bundle(&config.signatures)?, applications, Arc::default());
        tracing::info!(
            signatures = known.knowledge.bundle.version(),
            applications = known.numbers.len(),
            "rules can ask for applications"
        );
        let shared = Shared { version: AtomicU64::new(0), known: Mutex::new(Arc::new(known)) };
        Ok(Some(Self { shared: Arc::new(shared) }))
    }

    /// Reads signatures anew. Conversations that are being looked into begin anew; those that have a verdict keep it. Whether there are others
    /// now.
    pub fn reload(&self, files: &[PathBuf], applications: &mut Applications) -> Result<bool, LoadError> {
        let bundle = bundle(files)?;
        let mut known = self.shared.known.lock().unwrap_or_else(PoisonError::into_inner);
        if bundle.version() == known.knowledge.bundle.version() {
            return Ok(false);
        }
        let provisioned = Arc::clone(&known.provisioned);
        let generation = known.generation + 1;
        let next = Known::new(bundle, applications, Arc::clone(&known.overridden));
        *known = Arc::new(Known { provisioned, generation, ..next });
        tracing::info!(signatures = known.knowledge.bundle.version(), "other signatures are in force");
        self.shared.version.fetch_add(1, Ordering::Release);
        Ok(true)
    }

    /// What the datapath is told.
    pub fn inspection(&self, config: &config::InspectionSection) -> Inspection {
        let budget = Budget { packets: config.packets, bytes: config.octets };
        let places = Places::new(config.conversations as usize);
        let mut inspection = Inspection::new(self.clone(), budget, places);
        inspection.of_all = config.always;
        inspection
    }

    /// SMFs have said how applications are told. It holds for questions that are asked from now on.
    pub fn provision(&self, pfds: &Pfds) {
        let provisioned = Provisioned::new(pfds);
        for (application, why) in provisioned.left_out() {
            tracing::warn!(application, why, "a PFD finds nothing");
        }
        let overridden: HashSet<_> = pfds.iter().map(|(_, described)| described.number).collect();
        let mut known = self.shared.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Arc::new(Known {
            knowledge: Arc::clone(&known.knowledge),
            numbers: Arc::clone(&known.numbers),
            kin: Kin::new(&known.knowledge.bundle, &known.numbers, &overridden),
            overridden: Arc::new(overridden),
            provisioned: Arc::new(provisioned),
            generation: known.generation,
        });
        self.shared.version.fetch_add(1, Ordering::Release);
    }
}

impl Known {
    /// Applications get their names. Those that are overridden have PFDs.
    fn new(
        bundle: Arc<Bundle>,
        applications: &mut Applications,
        overridden: Arc<HashSet<Application>>,
    ) -> Self {
        let names = bundle.applications().map(|(_, application)| application.name.as_bytes());
        let numbers: Arc<[Application]> = applications.inspects(names).into();
        Self {
            kin: Kin::new(&bundle, &numbers, &overridden),
            numbers,
            knowledge: Arc::new(Knowledge::new(bundle)),
            provisioned: Arc::default(),
            overridden,
            generation: 0,
        }
    }

    /// The verdict on what PFDs have found.
    fn described(&self, application: Application) -> Verdict {
        Verdict::Is(self.kin.described(application))
    }

    /// What signatures have found.
    fn found(&self, standing: Standing) -> Verdict {
        match standing {
            Standing::SoFar(application) => Verdict::SoFar(self.kin.found(application)),
            Standing::Known(verdict) => match self.kin.found(verdict.application) {
                Lineage::NONE => Verdict::None,
                lineage => Verdict::Is(lineage),
            },
        }
    }
}

/// A conversation that is looked into, and the signatures that it is looked into with.
#[derive(Debug, Default)]
pub struct Question {
    generation: u64,
    conversation: Conversation,
    why: Why,
}

/// A PFD describes such flows.
const BY_FLOW: Why = Why(u8::MAX);
/// A PFD names such servers, or such URLs.
const BY_NAME: Why = Why(u8::MAX - 1);

/// What a verdict rests on that rests on this: evidence by its place.
const fn by(evidence: Evidence) -> Why {
    Why(evidence as u8)
}

/// What a verdict rests on, in words, and how sure that is.
pub(super) fn words(why: Why) -> Option<(&'static str, &'static str)> {
    let certain = Confidence::Certain.name();
    match why {
        BY_FLOW => Some(("a flow that an SMF has described (PFD)", certain)),
        BY_NAME => Some(("a name or URL that an SMF has given (PFD)", certain)),
        Why(place) => {
            let evidence = Evidence::ALL.get(usize::from(place))?;
            (*evidence != Evidence::Nothing).then(|| (evidence.text(), evidence.confidence().name()))
        }
    }
}

thread_local! {
    /// A worker's shards take turns at one desk: some hundred, each with one of its own, would be looked for in a farther cache packet by packet.
    static DESK: RefCell<Box<Desk>> = RefCell::default();
}

/// What a shard's conversations share.
#[derive(Debug)]
pub struct Room {
    version: u64,
    known: Arc<Known>,
    surroundings: Surroundings,
}

impl Room {
    /// What is known now. With other signatures, what was found with the former ones is forgotten.
    fn refresh(&mut self, shared: &Shared, question: &mut Question) {
        let version = shared.version.load(Ordering::Acquire);
        if version != self.version {
            let known = Arc::clone(&shared.known.lock().unwrap_or_else(PoisonError::into_inner));
            if known.generation != self.known.generation {
                self.surroundings.forget_names();
            }
            (self.known, self.version) = (known, version);
        }
        if question.generation != self.known.generation {
            std::mem::take(&mut question.conversation).end(&mut self.surroundings);
            question.generation = self.known.generation;
        }
    }
}

impl Inspector for Detector {
    type State = Question;
    type Room = Room;

    fn room(&self, seed: u64) -> Room {
        // The version first: what is published in between is seen once more, and not missed.
        let version = self.shared.version.load(Ordering::Acquire);
        let known = Arc::clone(&self.shared.known.lock().unwrap_or_else(PoisonError::into_inner));
        Room { version, known, surroundings: Surroundings::new(seed) }
    }

    fn step(
        &self,
        room: &mut Room,
        question: &mut Question,
        payload: &Payload<'_>,
        direction: Direction,
        _: Nanos,
    ) -> Verdict {
        room.refresh(&self.shared, question);
        let Room { known, surroundings, .. } = room;
        if let Some(application) = known.provisioned.of_flow(&payload.ip, direction) {
            question.why = BY_FLOW;
            return known.described(application);
        }
        let packet = Packet { ip: payload.ip, bytes: payload.packet, tunnel: None };
        let is_uplink = direction == Direction::Uplink;
        let is_stream = payload.ip.key.protocol == IpProtocol::TCP;
        let (standing, described) = DESK.with_borrow_mut(|desk| {
            surroundings.exchange(desk);
            let standing = question.conversation.step(&known.knowledge, surroundings, &packet, is_uplink);
            let described = known.provisioned.of_sheet(surroundings.sheet(), is_stream);
            surroundings.exchange(desk);
            (standing, described)
        });
        if let Some(application) = described {
            question.why = BY_NAME;
            return known.described(application);
        }
        question.why = by(match standing {
            Standing::Known(verdict) => verdict.evidence,
            Standing::SoFar(_) => question.conversation.evidence(),
        });
        known.found(standing)
    }

    fn why(&self, question: &Question) -> Why {
        question.why
    }

    fn end(&self, room: &mut Room, mut question: Question) {
        question.conversation.end(&mut room.surroundings);
    }
}
