//! Blocks of octets that all streams share.

/// Octets of a block: a segment on Ethernet.
pub(super) const BLOCK: usize = 1536;
/// No block.
pub(super) const NONE: u32 = u32::MAX;

/// Octets of a stream, at most a block's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub sequence: u32,
    /// 0: nobody's.
    pub length: u16,
    /// The block of what follows.
    pub next: u32,
}

/// Taken up to a limit, and then kept.
#[derive(Debug)]
pub(super) struct Blocks {
    pieces: Vec<Piece>,
    octets: Vec<[u8; BLOCK]>,
    free: Vec<u32>,
    limit: usize,
}

impl Blocks {
    pub(super) const fn new(octets: usize) -> Self {
        Self { pieces: Vec::new(), octets: Vec::new(), free: Vec::new(), limit: octets / BLOCK }
    }

    pub(super) const fn memory(&self) -> usize {
        self.octets.capacity() * BLOCK
            + self.pieces.capacity() * size_of::<Piece>()
            + self.free.capacity() * 4
    }

    /// A block, if there is one.
    pub(super) fn take(&mut self) -> Option<u32> {
        if let Some(block) = self.free.pop() {
            return Some(block);
        }
        if self.octets.len() >= self.limit {
            return None;
        }
        self.octets.push([0; BLOCK]);
        self.pieces.push(Piece { sequence: 0, length: 0, next: NONE });
        Some(self.octets.len() as u32 - 1)
    }

    /// Gives it back.
    pub(super) fn free(&mut self, block: u32) {
        if let Some(piece) = self.pieces.get_mut(block as usize)
            && piece.length > 0
        {
            piece.length = 0;
            self.free.push(block);
        }
    }

    /// A piece, if this block has one.
    pub(super) fn get(&self, block: u32) -> Option<&Piece> {
        self.pieces.get(block as usize)
    }

    /// Its octets.
    pub(super) fn octets(&self, block: u32) -> &[u8] {
        let length = self.get(block).map_or(0, |piece| usize::from(piece.length));
        self.octets.get(block as usize).and_then(|octets| octets.get(..length)).unwrap_or_default()
    }

    /// Writes a piece of at most [`BLOCK`] octets, which `next` follows.
    pub(super) fn fill(&mut self, block: u32, sequence: u32, octets: &[u8], next: u32) {
        let place = self.octets.get_mut(block as usize).and_then(|place| place.get_mut(..octets.len()));
        if let (Some(place), Some(piece)) = (place, self.pieces.get_mut(block as usize)) {
            place.copy_from_slice(octets);
            *piece = Piece { sequence, length: octets.len() as u16, next };
        }
    }

    /// `next` follows `block` from now on; false if there is no such block.
    pub(super) fn lead(&mut self, block: u32, next: u32) -> bool {
        self.pieces.get_mut(block as usize).map(|piece| piece.next = next).is_some()
    }

    #[cfg(test)]
    pub(super) const fn used(&self) -> usize {
        self.octets.len() - self.free.len()
    }
}
