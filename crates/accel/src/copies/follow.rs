//! How a copy follows its table.

use super::layout::{HEADER_LINES, KIND, LENGTHS, LINE, MOST_REGIONS, PARAMETERS, REGIONS};
use crate::device::Failure;
use tables::image::{Changes, Image, Kind};

/// Lines for a table's regions to grow by on a GPU, each.
const SPARE: usize = 1 << 14;

/// What a copy is, without its words: where they go, and of which generation it is.
#[derive(Debug, Clone)]
pub struct Follower {
    kind: Kind,
    /// By region: its first line, and lines of room.
    regions: Vec<(usize, usize)>,
    lines: usize,
    generation: u64,
    header: Vec<u32>,
}

impl Follower {
    /// For a copy of `image`, with room for each region to grow by `spare` lines, if it may grow.
    pub fn new(image: &dyn Image, spare: usize) -> Result<Self, Failure> {
        let (mut regions, mut lines) = (Vec::new(), HEADER_LINES);
        for words in image.regions() {
            let room = words.len().div_ceil(LINE) + spare;
            regions.push((lines, room));
            lines = lines.saturating_add(room);
        }
        // Places in a copy are numbers of 32 bits.
        if regions.len() > MOST_REGIONS || u32::try_from(lines).is_err() {
            return Err(Failure::OutOfMemory { octets: lines.saturating_mul(4 * LINE), what: "a table" });
        }
        Ok(Self { kind: image.layout().kind, regions, lines, generation: 0, header: Vec::new() })
    }

    /// For a copy on a GPU, whose memory is taken once.
    pub fn on_gpu(image: &dyn Image) -> Result<Self, Failure> {
        // Most tables never grow, and of those that do only the regions behind the first one.
        Self::new(image, if image.regions().len() > 1 { SPARE } else { 0 })
    }

    /// What it is a copy of.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Words that it needs.
    pub fn words(&self) -> usize {
        self.lines * LINE
    }

    /// Hands to `write` what has changed, with the place of the first word of each piece. `changes` are those that the table told of; all of the copies get the same
    /// ones, for a table tells them once. If the copy has missed some, it asks for all.
    pub fn follow(
        &mut self,
        image: &dyn Image,
        changes: &Changes,
        mut write: impl FnMut(usize, &[u32]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (layout, regions) = (image.layout(), image.regions());
        if layout.kind != self.kind || regions.len() != self.regions.len() {
            return Err(Failure::Call { call: "follow", why: "another kind of table than before".into() });
        }
        let missed = changes.generation != self.generation
            && (self.header.is_empty() || changes.generation != self.generation + 1);
        if missed && !changes.all {
            return Err(Failure::Missed { have: self.generation, told: changes.generation });
        }
        for (words, (_, room)) in regions.iter().zip(&self.regions) {
            if words.len() > room * LINE {
                return Err(Failure::OutOfMemory { octets: words.len() * 4, what: "a table's growth" });
            }
        }
        // The header goes first, so that regions are never shorter than what leads into them says; kernels check that anyway.
        let mut header = vec![0; HEADER_LINES * LINE];
        header[KIND] = layout.kind as u32;
        header[PARAMETERS..REGIONS].copy_from_slice(&layout.parameters);
        for (at, (words, (first, _))) in regions.iter().zip(&self.regions).enumerate() {
            header[REGIONS + at] = *first as u32;
            header[LENGTHS + at] = words.len().div_ceil(LINE) as u32;
        }
        if header != self.header {
            write(0, &header)?;
            self.header = header;
        }
        if changes.all {
            for (words, (first, _)) in regions.iter().zip(&self.regions) {
                write(first * LINE, words)?;
            }
        } else {
            for &(region, line) in &changes.lines {
                let (region, from) = (region as usize, line as usize * LINE);
                let words = regions.get(region).and_then(|words| words.get(from..from + LINE));
                if let (Some(words), Some((first, _))) = (words, self.regions.get(region)) {
                    write(first * LINE + from, words)?;
                }
            }
        }
        self.generation = changes.generation;
        Ok(())
    }
}
