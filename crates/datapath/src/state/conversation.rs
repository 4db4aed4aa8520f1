//! Conversations that an inspector is shown, and the flows that hang on them.
//!
//! A conversation is found in two ways: by its ends, when a flow begins, changes or has ended; and while it is under question, by the handle that stands
//! in the flow's line where the number of its rule's record would be ([`QUESTION`]). No record has such a number, so that the packets of a flow
//! under question fall off the fast path by the bounds check that is there anyhow, and those of other flows pay nothing.
//!
//! Nothing here waits for a clock: a conversation goes when the last flow that counts on it has ended, and its question with it. What its flows
//! have carried is counted for its application ([`crate::state::carried`]).

use crate::counters::{InspectionCounters, Traffic};
use crate::inspect::{
    Detection, Direction, Finding, Inspected, Inspection, Payload, Questions, Verdict, Why,
};
use crate::state::carried::{ApplicationCounters, ApplicationSum, Rest};
use crate::state::flow::{Flow, Key, QUESTION};
use crate::state::permit::Permit;
use pfcp::Seid;
use session::applications::Lineage;
use session::rules::Application;
use std::collections::VecDeque;
use tables::flow::FlowKey;
use tables::hash::mix;
use tables::{BulkMap, Lookup, Nanos, Slab};

/// Bits of a handle's number among [`Conversations::hung`]; above it stands the generation, and [`QUESTION`].
const NUMBER: u32 = 20;
/// Flows of one shard that are under question at a time.
const MOST: u32 = (1 << NUMBER) - 1;

/// What is known of a packet's application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    pub of: Lineage,
    /// More may be known later.
    pub open: bool,
}

impl Known {
    /// It has none.
    pub const NONE: Self = Self { of: Lineage::NONE, open: false };
}

/// What came of asking about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub conversation: u32,
    pub known: Known,
    /// Which way the packet goes.
    pub direction: Direction,
}

/// A conversation that a packet belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Inquiry {
    /// By which the packet's rule was found.
    pub answer: Answer,
    /// That may be another one when more is known.
    pub open: bool,
}

#[derive(Debug)]
struct Conversation {
    ends: Key,
    seid: Seid,
    /// By the verdict, or so far.
    of: Lineage,
    /// What that rests on.
    why: Why,
    question: Option<Question>,
    /// Flows that count on it.
    flows: u32,
    /// What was told of its beginning: its end is to be told, too.
    told: Option<Box<Detection>>,
    /// What is to be counted for its application, uplink and downlink.
    rests: [Rest; 2],
    /// It was counted among its application's conversations.
    is_counted: bool,
}

impl Conversation {
    const fn rest(&mut self, uplink: bool) -> &mut Rest {
        let [up, down] = &mut self.rests;
        if uplink { up } else { down }
    }

    /// What is counted now for its application. `over`: it ends.
    fn sum(&mut self, uplink: Traffic, downlink: Traffic, over: bool) -> Option<ApplicationSum> {
        if !self.is_counted && uplink.packets + downlink.packets == 0 {
            return None;
        }
        let begins = !std::mem::replace(&mut self.is_counted, true);
        let counters =
            ApplicationCounters { conversations: begins.into(), over: over.into(), uplink, downlink };
        Some(ApplicationSum { application: self.of.first(), counters })
    }
}

#[derive(Debug)]
struct Question {
    /// The inspector's state, by number.
    state: u32,
    /// What was shown.
    packets: u32,
    bytes: u32,
    _place: Permit,
}

/// A flow under question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hung {
    pub conversation: u32,
    /// Number of the record of the rule that it goes by so far.
    pub rule: u32,
    /// What the conversation was taken for when that was found.
    pub of: Lineage,
    /// Which way its packets go.
    pub direction: Direction,
}

/// A shard's conversations; see the module's documentation.
#[derive(Debug)]
pub(crate) struct Conversations {
    /// Numbers of conversations, by the hash of ends and session.
    index: BulkMap<u64, u32>,
    all: Slab<Conversation>,
    hung: Slab<Hung>,
    questions: Box<dyn Questions>,
    /// Those under question, number and generation, by age; and some that no longer are.
    waiting: VecDeque<(u32, u32)>,
    seed: u64,
    /// See [`Inspection::of_all`].
    pub of_all: bool,
    /// To be told.
    pub detections: Vec<Detection>,
    /// To be added to the worker's sums.
    pub carried: Vec<ApplicationSum>,
}

impl Conversations {
    pub fn new(inspection: &Inspection, seed: u64) -> Self {
        Self {
            index: BulkMap::new(seed.rotate_left(8)),
            all: Slab::new(u32::MAX),
            hung: Slab::new(MOST),
            questions: inspection.open(seed.rotate_left(24)),
            waiting: VecDeque::new(),
            seed,
            of_all: inspection.of_all,
            detections: Vec::new(),
            carried: Vec::new(),
        }
    }

    /// Whether none is remembered.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What there is.
    pub fn count(&self) -> Inspected {
        Inspected { conversations: self.all.len(), open: self.questions.len(), flows: self.hung.len() }
    }

    fn hash(&self, ends: &Key, seid: Seid) -> u64 {
        mix(ends.hash(self.seed), seid.0 ^ self.seed.rotate_left(32))
    }

    fn find(&self, ends: &Key, seid: Seid) -> Option<u32> {
        let number = self.index.get(&self.hash(ends, seid))?;
        self.all.get(number).is_some_and(|it| (&it.ends, it.seid) == (ends, seid)).then_some(number)
    }

    /// Asks for what [`Self::consult`] is going to read first of a conversation that no flow hangs on.
    #[inline(always)]
    pub fn expect(&self, ends: &Key, seid: Seid) {
        self.index.prepare(&self.hash(ends, seid));
    }

    /// Asks for the conversation between these ends, whose place was asked for before.
    #[inline(always)]
    pub fn expect_found(&self, ends: &Key, seid: Seid) {
        if let Some(number) = self.index.get(&self.hash(ends, seid)) {
            self.all.prefetch_whole(number);
        }
    }

    /// Asks for what stands behind a handle.
    #[inline(always)]
    pub fn expect_hung(&self, handle: u32) {
        self.hung.prefetch_whole(handle & MOST);
    }

    /// Asks for the conversation that a flow hangs on whose line says `rule`, and says which rule it goes by so far.
    #[inline(always)]
    pub fn expect_conversation(&self, rule: u32) -> Option<u32> {
        let hung = self.hung(rule)?;
        self.all.prefetch_whole(hung.conversation);
        Some(hung.rule)
    }

    /// Asks for what the inspector remembers of the conversation that a flow hangs on, which was asked for before.
    #[inline(always)]
    pub fn expect_state(&self, rule: u32) {
        let conversation = self.hung(rule).and_then(|hung| self.all.get(hung.conversation));
        if let Some(question) = conversation.and_then(|it| it.question.as_ref()) {
            self.questions.expect(question.state);
        }
    }

    /// How a flow hangs on a conversation whose line says `rule`.
    #[inline(always)]
    pub fn hung(&self, rule: u32) -> Option<&Hung> {
        self.hung.get(self.number_of(rule)?)
    }

    /// Shows one more packet, if its conversation is under question or new. `None`: there is no room for it. `rule`: what the flow's line says, if there
    /// is one.
    pub fn consult(
        &mut self,
        (ends, seid, rule): (&Key, Seid, u32),
        (payload, direction): (&Payload<'_>, Direction),
        now: Nanos,
        inspection: &Inspection,
        counters: &mut InspectionCounters,
    ) -> Option<(u32, Known)> {
        let is_of = |it: &Conversation| (&it.ends, it.seid) == (ends, seid);
        let hung_on = self.hung(rule).map(|hung| hung.conversation);
        let hung_on = hung_on.filter(|number| self.all.get(*number).is_some_and(is_of));
        let known = hung_on.or_else(|| self.find(ends, seid));
        let known = known.or_else(|| self.begin(ends, seid, inspection, counters));
        let Some(number) = known else {
            counters.refused += 1;
            return None;
        };
        Some((number, self.show(number, (payload, direction), now, inspection, counters)?))
    }

    /// Shows one more packet of a conversation, if it is under question.
    pub fn show(
        &mut self,
        number: u32,
        (payload, direction): (&Payload<'_>, Direction),
        now: Nanos,
        inspection: &Inspection,
        counters: &mut InspectionCounters,
    ) -> Option<Known> {
        let conversation = self.all.get_mut(number)?;
        if let Some(question) = &mut conversation.question {
            counters.shown += 1;
            question.packets += 1;
            question.bytes = question.bytes.saturating_add(payload.packet.len() as u32);
            let budget = &inspection.budget;
            let is_all = question.packets >= budget.packets || question.bytes >= budget.bytes;
            let verdict = self.questions.step(question.state, payload, direction, now);
            conversation.why = self.questions.why(question.state);
            let counter = match verdict {
                Verdict::Is(lineage) => {
                    conversation.of = lineage;
                    Some(&mut counters.recognised)
                }
                Verdict::None => {
                    conversation.of = Lineage::NONE;
                    Some(&mut counters.unknown)
                }
                Verdict::SoFar(lineage) => {
                    conversation.of = lineage;
                    is_all.then_some(&mut counters.exhausted)
                }
            };
            if let Some(counter) = counter {
                *counter += 1;
                self.questions.end(question.state);
                conversation.question = None;
            }
        }
        Some(Known { of: conversation.of, open: conversation.question.is_some() })
    }

    fn begin(
        &mut self,
        ends: &Key,
        seid: Seid,
        inspection: &Inspection,
        counters: &mut InspectionCounters,
    ) -> Option<u32> {
        let hash = self.hash(ends, seid);
        // Of two with the same hash the first one keeps it.
        if self.index.get(&hash).is_some() {
            return None;
        }
        let place = inspection.places.take().or_else(|| {
            counters.given_up += u64::from(self.give_up());
            inspection.places.take()
        })?;
        let state = self.questions.begin()?;
        let question = Some(Question { state, packets: 0, bytes: 0, _place: place });
        let conversation = Conversation {
            ends: *ends,
            seid,
            of: Lineage::NONE,
            why: Why::default(),
            question,
            flows: 0,
            told: None,
            rests: [Rest::default(); 2],
            is_counted: false,
        };
        let Ok(number) = self.all.insert(conversation) else {
            self.questions.end(state);
            return None;
        };
        if self.index.insert(hash, number).is_err() {
            self.all.remove(number);
            self.questions.end(state);
            return None;
        }
        if self.waiting.len() > 2 * self.questions.len() {
            let (waiting, all) = (&mut self.waiting, &self.all);
            waiting.retain(|(number, generation)| {
                all.get_if(*number, *generation).is_some_and(|it| it.question.is_some())
            });
        }
        self.waiting.push_back((number, self.all.generation(number)));
        Some(number)
    }

    /// The question that has been open for longest is closed. False: there is none.
    fn give_up(&mut self) -> bool {
        while let Some((number, generation)) = self.waiting.pop_front() {
            if let Some(conversation) = self.all.get_mut_if(number, generation)
                && let Some(question) = conversation.question.take()
            {
                self.questions.end(question.state);
                return true;
            }
        }
        false
    }

    /// A conversation that no flow counts on is forgotten.
    pub fn forget_unused(&mut self, number: u32) {
        if self.all.get(number).is_some_and(|it| it.flows == 0)
            && let Some(mut conversation) = self.all.remove(number)
        {
            let [up, down] = conversation.rests.each_mut().map(|rest| rest.take(Traffic::default()));
            self.carried.extend(conversation.sum(up, down, true));
            self.index.remove(&self.hash(&conversation.ends, conversation.seid));
            if let Some(question) = conversation.question {
                self.questions.end(question.state);
            }
            if let Some(told) = conversation.told {
                self.detections.push(Detection { begins: false, ..*told });
            }
        }
    }

    /// Whether a conversation is known for good to be of this application, and has flows, and its beginning was not told.
    pub fn is_untold(&self, number: u32, application: Application) -> bool {
        self.all.get(number).is_some_and(|conversation| {
            let is_settled = conversation.question.is_none() && conversation.flows > 0;
            is_settled && conversation.told.is_none() && conversation.of.has(application)
        })
    }

    /// Tells where it begins, and will tell where it ends.
    pub fn tell(&mut self, number: u32, detection: Detection) {
        if let Some(conversation) = self.all.get_mut(number) {
            conversation.told = Some(Box::new(detection));
            self.detections.push(detection);
        }
    }

    /// A flow counts on a conversation from now on. Its line says its rule; while that may change, a handle takes the rule's place. `before`: what it
    /// has carried that is not the conversation's.
    pub fn join(&mut self, flow: &mut Flow, inquiry: Inquiry, uplink: bool, before: Traffic) {
        let Inquiry { answer: Answer { conversation, known, direction }, open } = inquiry;
        if let Some(joined) = self.all.get_mut(conversation) {
            joined.flows += 1;
            joined.rest(uplink).subtract(before);
            flow.set_inspected(true);
            let hung = Hung { conversation, rule: flow.rule, of: known.of, direction };
            // If too many are under question, this one keeps the rule that it has.
            if open && let Ok(number) = self.hung.insert(hung) {
                flow.rule = QUESTION | (self.hung.generation(number) << NUMBER) & !QUESTION | number;
            }
        }
    }

    /// A flow that hangs on this conversation goes on hanging on it, and what it has carried goes on being counted; or, where nothing is open any more, it
    /// counts on it by its rule alone. `rule`: what its line says. What it is to say; `None`: it doesn't hang on it.
    pub fn stay(&mut self, rule: u32, inquiry: Inquiry, next: u32) -> Option<u32> {
        let number = self.number_of(rule)?;
        let answer = inquiry.answer;
        let hung = self.hung.get_mut(number).filter(|hung| hung.conversation == answer.conversation)?;
        if inquiry.open {
            (hung.rule, hung.of) = (next, answer.known.of);
            return Some(rule);
        }
        self.hung.remove(number);
        Some(next)
    }

    /// A flow hangs on its conversation no longer, but counts on it by its rule alone. `rule`: what its line says. What it is to say.
    pub fn settle(&mut self, rule: u32) -> u32 {
        let hung = self.number_of(rule).and_then(|number| self.hung.remove(number));
        hung.map_or(rule, |hung| hung.rule)
    }

    /// It is remembered as if one more flow counted on it, or no longer: then it is forgotten where it is concluded, if it has none.
    pub fn hold(&mut self, number: u32, holds: bool) {
        if let Some(conversation) = self.all.get_mut(number) {
            let flows = conversation.flows;
            conversation.flows = if holds { flows + 1 } else { flows.saturating_sub(1) };
        }
    }

    /// A flow between these ends, of that session, that counted on its conversation does no longer.
    pub fn leave(&mut self, ends: &Key, seid: Option<Seid>, flow: &Flow, uplink: bool) {
        let found = self.conversation_of(ends, seid, flow.rule);
        self.number_of(flow.rule).and_then(|number| self.hung.remove(number));
        if let Some(number) = found
            && let Some(conversation) = self.all.get_mut(number)
        {
            conversation.rest(uplink).add(flow.carried());
            conversation.flows = conversation.flows.saturating_sub(1);
            self.forget_unused(number);
        }
    }

    /// A flow goes on that counts on its conversation, and its own counts begin anew.
    pub fn begin_anew(&mut self, ends: &Key, seid: Option<Seid>, flow: &Flow, uplink: bool) {
        let found = self.conversation_of(ends, seid, flow.rule);
        if let Some(conversation) = found.and_then(|number| self.all.get_mut(number)) {
            conversation.rest(uplink).add(flow.carried());
        }
    }

    /// A flow goes on: what it has carried is counted for its conversation's application, unless that is under question.
    pub fn count_live(&mut self, ends: &Key, seid: Option<Seid>, flow: &Flow, uplink: bool) {
        let found = self.conversation_of(ends, seid, flow.rule);
        let conversation = found.and_then(|number| self.all.get_mut(number));
        if let Some(conversation) = conversation.filter(|it| it.question.is_none()) {
            let (counted, none) = (conversation.rest(uplink).take(flow.carried()), Traffic::default());
            if counted != none {
                let (up, down) = if uplink { (counted, none) } else { (none, counted) };
                self.carried.extend(conversation.sum(up, down, false));
            }
        }
    }

    /// What the conversation between these ends is, or is taken for so far.
    pub fn lineage(&self, ends: &Key, seid: Seid) -> Option<Lineage> {
        Some(self.all.get(self.find(ends, seid)?)?.of)
    }

    /// What is known of the conversation that a flow between these ends, of that session, counts on. `rule`: what its line says.
    pub fn finding(&self, ends: &Key, seid: Seid, rule: u32) -> Option<Finding> {
        let conversation = self.all.get(self.conversation_of(ends, Some(seid), rule)?)?;
        let Conversation { of, why, question, .. } = conversation;
        Some(Finding { application: of.first(), open: question.is_some(), why: *why })
    }

    /// The conversation that a flow counts on, if it counts on one.
    fn conversation_of(&self, ends: &Key, seid: Option<Seid>, rule: u32) -> Option<u32> {
        self.hung(rule).map(|hung| hung.conversation).or_else(|| self.find(ends, seid?))
    }

    /// The number of the record of the rule that a flow goes by, whose line says `rule`.
    pub fn rule(&self, rule: u32) -> u32 {
        self.hung(rule).map_or(rule, |hung| hung.rule)
    }

    fn number_of(&self, handle: u32) -> Option<u32> {
        let number = handle & MOST;
        let generation = (self.hung.generation(number) << NUMBER) & !QUESTION;
        (handle & QUESTION != 0 && handle & !QUESTION & !MOST == generation).then_some(number)
    }
}
