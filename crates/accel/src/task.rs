//! What is to be done: a [`Task`], and a [`Batch`] of items for it.
//!
//! A batch is two flat buffers in and one flat buffer out, so that any device can copy it as it is. What stands in them follows from the task:
//!
//! | task | `items`: for each item | `data` | `output` |
//! |---|---|---|---|
//! | [`Task::Hash`] | 24 octets | – | 4 octets: the hash |
//! | [`Task::Lookup`] | a key's words ([`key_words`]) | – | 4 octets: what is found, or [`NONE`](crate::copies::layout::NONE) |
//! | [`Task::Nea2`] | a [`Packet`]'s descriptor, 32 octets | the packets, each from a multiple of 16 on | as `data`, ciphered |
//! | [`Task::LdpcEncode`] | the code's information bits | – | its coded bits |
//! | [`Task::LdpcDecode`] | the LLRs, an octet each | – | a [`Verdict`]'s 4 octets, and the information bits |
//!
//! Numbers are little-endian: all that runs here is. What is pushed is checked, so a batch that exists is one that a device may trust: a kernel that
//! follows an offset out of its buffer would end more than its own batch. Input is never changed, also not by a device that fails half-way; that
//! is what makes it possible to give a batch to another device.

use crate::copies::{TableId, key_words};
use ran::ldpc::{Code, Effort, PUNCTURED_COLUMNS};
use ran::nea2::{Bearer, Count, Direction};
use tables::image;

/// Octets of an item that is hashed: about those of an IP header's addresses and ports.
pub const HASHED: usize = 24;

/// The most hashes of an item.
pub const MOST_HASHES: u8 = 4;

/// Octets of a packet's descriptor.
pub const DESCRIPTOR: usize = 32;

/// What a packet's place in `data` is a multiple of: the width of a device's loads, and AES's block.
pub const ALIGNMENT: usize = 16;

/// Octets of a [`Verdict`].
pub const VERDICT: usize = 4;

/// The most octets that a batch's buffers have, each: places in them are numbers of 32 bits, and no device has room for more anyway.
pub const MOST_OCTETS: usize = 1 << 30;

/// Kinds of tasks, by which devices say what they can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Kind {
    /// [`Task::Hash`].
    Hash = 1,
    /// [`Task::Nea2`].
    Nea2 = 2,
    /// [`Task::LdpcEncode`].
    LdpcEncode = 3,
    /// [`Task::LdpcDecode`].
    LdpcDecode = 4,
    /// [`Task::Lookup`].
    Lookup = 5,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Hash, Self::Nea2, Self::LdpcEncode, Self::LdpcDecode, Self::Lookup];
}

/// What is done with each item of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Hashes, one on top of the other: work that is all arithmetic, to measure devices by.
    Hash(Hashes),
    /// NEA2 (TS 33.501 D.2.1.3): ciphering or deciphering, each packet with its own key.
    Nea2,
    /// LDPC encoding (TS 38.212 §5.3.2).
    LdpcEncode(Code),
    /// LDPC decoding.
    LdpcDecode(Decoding),
    /// Looking keys up in the device's copy of a table.
    Lookup(Lookup),
}

/// Where keys are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    /// The table.
    pub table: TableId,
    /// What kind of table it is, from which follows what its keys are.
    pub kind: image::Kind,
}

/// How many hashes an item gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hashes(u8);

impl Hashes {
    /// One to four.
    pub fn new(number: u8) -> Result<Self, Misfit> {
        if (1..=MOST_HASHES).contains(&number) { Ok(Self(number)) } else { Err(Misfit::Hashes(number)) }
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// What all blocks of a batch have in common for the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoding {
    code: Code,
    received: u32,
    fillers: u32,
    effort: Effort,
}

impl Decoding {
    /// Blocks of `code`, of which the first `received` coded bits have LLRs and the last `fillers` information bits are known to be zeros.
    pub fn new(code: Code, received: usize, fillers: usize, effort: Effort) -> Result<Self, Misfit> {
        let most = code.coded_bits();
        if received > most {
            return Err(Misfit::Received { given: received, most });
        }
        let most = code.info_bits() - PUNCTURED_COLUMNS * code.z();
        if fillers > most {
            return Err(Misfit::Fillers { given: fillers, most });
        }
        // A verdict has 16 bits for the number.
        if effort.iterations > usize::from(u16::MAX) {
            return Err(Misfit::Iterations(effort.iterations));
        }
        Ok(Self { code, received: received as u32, fillers: fillers as u32, effort })
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// LLRs of each block.
    pub fn received(&self) -> usize {
        self.received as usize
    }

    /// Known zeros at the end of the information bits.
    pub fn fillers(&self) -> usize {
        self.fillers as usize
    }

    /// Work that a block is worth.
    pub fn effort(&self) -> Effort {
        self.effort
    }
}

/// Why an item can't be in a batch, or a task be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Hashes none or too many.
    #[error("{0} hashes an item: it must be 1 to {MOST_HASHES}")]
    Hashes(u8),
    /// More LLRs than coded bits.
    #[error("{given} LLRs a block, where the code has {most} coded bits")]
    Received {
        /// LLRs.
        given: usize,
        /// Coded bits.
        most: usize,
    },
    /// More fillers than information bits that may be.
    #[error("{given} filler bits, where the code may have {most}")]
    Fillers {
        /// Filler bits.
        given: usize,
        /// Information bits but for those that are never sent.
        most: usize,
    },
    /// More iterations than a verdict can tell.
    #[error("{0} iterations, where at most 65535 can be told")]
    Iterations(usize),
    /// The item has another length than the task's items.
    #[error("an item of {given} octets, where the task has {needed}")]
    Length {
        /// Octets of the item.
        given: usize,
        /// Octets that it must have.
        needed: usize,
    },
    /// The item is for another task.
    #[error("an item for another task than the batch's")]
    Task,
    /// The batch can't hold more.
    #[error("a batch has at most {MOST_OCTETS} octets in a buffer")]
    TooLong,
}

impl Task {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Hash(_) => Kind::Hash,
            Self::Nea2 => Kind::Nea2,
            Self::LdpcEncode(_) => Kind::LdpcEncode,
            Self::LdpcDecode(_) => Kind::LdpcDecode,
            Self::Lookup(_) => Kind::Lookup,
        }
    }

    /// Octets of an item in [`Batch::items`].
    pub fn item_octets(&self) -> usize {
        match self {
            Self::Hash(_) => HASHED,
            Self::Nea2 => DESCRIPTOR,
            Self::LdpcEncode(code) => code.info_bits().div_ceil(8),
            Self::LdpcDecode(decoding) => decoding.received(),
            Self::Lookup(lookup) => 4 * key_words(lookup.kind),
        }
    }

    /// Octets of [`Batch::output`] for so many items, with so many octets of data.
    pub fn output_octets(&self, items: usize, data: usize) -> usize {
        match self {
            Self::Nea2 => data,
            fixed => items * fixed.answer_octets(),
        }
    }

    /// Octets of an item's answer; of a packet none, for what it has are its own.
    pub fn answer_octets(&self) -> usize {
        match self {
            Self::Hash(_) | Self::Lookup(_) => 4,
            Self::Nea2 => 0,
            Self::LdpcEncode(code) => code.coded_bits().div_ceil(8),
            Self::LdpcDecode(decoding) => VERDICT + decoding.code.info_bits().div_ceil(8),
        }
    }
}

/// A packet for NEA2, without its octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The UE's key.
    pub key: [u8; 16],
    /// COUNT.
    pub count: Count,
    /// BEARER.
    pub bearer: Bearer,
    /// DIRECTION.
    pub direction: Direction,
}

/// How the decoding of a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Iterations made.
    pub iterations: u16,
    /// Whether all parity checks of the rows that were used hold.
    pub checks_hold: bool,
}

impl Verdict {
    /// As octets.
    pub fn octets(self) -> [u8; VERDICT] {
        let [low, high] = self.iterations.to_le_bytes();
        [low, high, u8::from(self.checks_hold), 0]
    }

    fn read(octets: &[u8]) -> Self {
        let at = |at: usize| octets.get(at).copied().unwrap_or_default();
        Self { iterations: u16::from_le_bytes([at(0), at(1)]), checks_hold: at(2) != 0 }
    }
}

/// Whoever hands in batches and wants them back in the order in which it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller(pub u32);

/// Items for one task; see the [module](self) for what its buffers hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// A number that its owner knows it by. Devices keep it and make nothing of it.
    pub ticket: u64,
    /// For whom the order matters, if for anyone. Only [`Fallback`](crate::Fallback) and those above it look at that.
    pub caller: Option<Caller>,
    task: Task,
    count: u32,
    items: Vec<u8>,
    data: Vec<u8>,
    output: Vec<u8>,
}

impl Batch {
    /// An empty batch.
    pub fn new(ticket: u64, task: Task) -> Self {
        Self { ticket, caller: None, task, count: 0, items: Vec::new(), data: Vec::new(), output: Vec::new() }
    }

    /// The same buffers for other items of a task.
    pub fn clear(&mut self, ticket: u64, task: Task) {
        *self = Self {
            ticket,
            caller: self.caller,
            task,
            count: 0,
            items: std::mem::take(&mut self.items),
            data: std::mem::take(&mut self.data),
            output: std::mem::take(&mut self.output),
        };
        self.items.clear();
        self.data.clear();
        self.output.clear();
    }

    /// Adds a key of as many words as the table's kind has.
    pub fn push_key(&mut self, words: &[u32]) -> Result<(), Misfit> {
        if self.task.kind() != Kind::Lookup {
            return Err(Misfit::Task);
        }
        self.room(4 * words.len(), 0)?;
        self.items.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self.grow();
        Ok(())
    }

    /// Adds an item of a fixed length: what is hashed, or a block's information bits.
    pub fn push(&mut self, item: &[u8]) -> Result<(), Misfit> {
        if matches!(self.task, Task::Nea2 | Task::LdpcDecode(_) | Task::Lookup(_)) {
            return Err(Misfit::Task);
        }
        self.room(item.len(), 0)?;
        self.items.extend_from_slice(item);
        self.grow();
        Ok(())
    }

    /// Adds a block's LLRs.
    pub fn push_llrs(&mut self, llrs: &[i8]) -> Result<(), Misfit> {
        if self.task.kind() != Kind::LdpcDecode {
            return Err(Misfit::Task);
        }
        self.room(llrs.len(), 0)?;
        self.items.extend(llrs.iter().map(|llr| llr.cast_unsigned()));
        self.grow();
        Ok(())
    }

    /// Adds a packet; one without octets is one, too.
    pub fn push_packet(&mut self, packet: Packet, octets: &[u8]) -> Result<(), Misfit> {
        if self.task != Task::Nea2 {
            return Err(Misfit::Task);
        }
        self.room(DESCRIPTOR, octets.len())?;
        let mut descriptor = [0; DESCRIPTOR];
        descriptor[..16].copy_from_slice(&packet.key);
        descriptor[16..20].copy_from_slice(&packet.count.0.to_le_bytes());
        descriptor[20] = packet.bearer.number();
        descriptor[21] = packet.direction as u8;
        descriptor[24..28].copy_from_slice(&(self.data.len() as u32).to_le_bytes());
        descriptor[28..].copy_from_slice(&(octets.len() as u32).to_le_bytes());
        self.items.extend_from_slice(&descriptor);
        self.data.extend_from_slice(octets);
        self.data.resize(self.data.len().next_multiple_of(ALIGNMENT), 0);
        self.count += 1;
        self.output.resize(self.data.len(), 0);
        Ok(())
    }

    fn room(&self, item: usize, data: usize) -> Result<(), Misfit> {
        let needed = self.task.item_octets();
        if item != needed {
            return Err(Misfit::Length { given: item, needed });
        }
        let grown = self.data.len().saturating_add(data).saturating_add(ALIGNMENT);
        let answers = self.output.len() + self.task.answer_octets();
        if self.items.len() + item > MOST_OCTETS
            || grown > MOST_OCTETS
            || answers > MOST_OCTETS
            || self.count == u32::MAX
        {
            return Err(Misfit::TooLong);
        }
        Ok(())
    }

    fn grow(&mut self) {
        self.count += 1;
        self.output.resize(self.output.len() + self.task.answer_octets(), 0);
    }

    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What is known of each item, one after the other.
    pub fn items(&self) -> &[u8] {
        &self.items
    }

    /// What items refer to.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// What a device has made of it.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// For devices: what is in, and where what comes out is to go.
    pub fn parts(&mut self) -> (&[u8], &[u8], &mut [u8]) {
        (&self.items, &self.data, &mut self.output)
    }

    /// Octets that go to a device.
    pub fn input_octets(&self) -> usize {
        self.items.len() + self.data.len()
    }

    /// The descriptors of a batch for NEA2; none of another.
    pub fn descriptors(&self) -> impl Iterator<Item = Descriptor> {
        descriptors(if self.task == Task::Nea2 { &self.items } else { &[] })
    }

    /// The octets of packet `at`, as they came out.
    pub fn packet(&self, at: usize) -> Option<&[u8]> {
        let place = self.descriptors().nth(at)?;
        self.output.get(place.place..place.place + place.length)
    }

    /// Answer `at` of a task whose answers have one length; without the verdict.
    pub fn answer(&self, at: usize) -> Option<&[u8]> {
        let octets = self.task.answer_octets();
        let skip = if self.task.kind() == Kind::LdpcDecode { VERDICT } else { 0 };
        (octets > 0 && at < self.len()).then(|| self.output.get(at * octets + skip..(at + 1) * octets))?
    }

    /// Answer `at` as a number.
    pub fn number(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.answer(at)?.first_chunk()?))
    }

    /// How decoding of block `at` ended.
    pub fn verdict(&self, at: usize) -> Option<Verdict> {
        let octets = self.task.answer_octets();
        (self.task.kind() == Kind::LdpcDecode && at < self.len())
            .then(|| self.output.get(at * octets..).map(Verdict::read))?
    }
}

/// The descriptors in the items of a batch for NEA2.
pub(crate) fn descriptors(items: &[u8]) -> impl Iterator<Item = Descriptor> {
    items.chunks_exact(DESCRIPTOR).filter_map(Descriptor::read)
}

/// A packet of a batch, and where its octets are in [`Batch::data`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// The packet.
    pub packet: Packet,
    /// The first octet.
    pub place: usize,
    /// How many.
    pub length: usize,
}

impl Descriptor {
    fn read(octets: &[u8]) -> Option<Self> {
        let word = |at: usize| octets.get(at..)?.first_chunk().copied().map(u32::from_le_bytes);
        let packet = Packet {
            key: *octets.first_chunk()?,
            count: Count(word(16)?),
            bearer: Bearer::new(*octets.get(20)?).ok()?,
            direction: if *octets.get(21)? == 0 { Direction::Uplink } else { Direction::Downlink },
        };
        Some(Self { packet, place: word(24)? as usize, length: word(28)? as usize })
    }
}
