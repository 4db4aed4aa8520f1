//! Reads octets from the front, and never beyond their end.

/// What is left to read.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'b> {
    rest: &'b [u8],
}

impl<'b> Cursor<'b> {
    /// From the beginning.
    pub const fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What is left.
    pub const fn rest(&self) -> &'b [u8] {
        self.rest
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// So many octets; `None`, and nothing is read, if there are fewer.
    pub fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// So many octets, or what there is of them.
    pub fn take_most(&mut self, count: usize) -> &'b [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*chunk)
    }

    /// One octet.
    pub fn u8(&mut self) -> Option<u8> {
        self.chunk().map(|[octet]: [u8; 1]| octet)
    }

    /// Two, in network order.
    pub fn u16(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_be_bytes)
    }

    /// Three.
    pub fn u24(&mut self) -> Option<usize> {
        self.chunk().map(|[a, b, c]: [u8; 3]| usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c))
    }

    /// Four.
    pub fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_be_bytes)
    }

    /// What follows a length of one octet.
    pub fn vector8(&mut self) -> Option<&'b [u8]> {
        let mut ahead = *self;
        let length = ahead.u8()?;
        let taken = ahead.take(length.into())?;
        *self = ahead;
        Some(taken)
    }

    /// What follows a length of two octets.
    pub fn vector16(&mut self) -> Option<&'b [u8]> {
        let mut ahead = *self;
        let length = ahead.u16()?;
        let taken = ahead.take(length.into())?;
        *self = ahead;
        Some(taken)
    }

    /// What follows a length of three octets.
    pub fn vector24(&mut self) -> Option<&'b [u8]> {
        let mut ahead = *self;
        let length = ahead.u24()?;
        let taken = ahead.take(length)?;
        *self = ahead;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_in_network_order_and_never_beyond_the_end() {
        let mut cursor = Cursor::new(&[1, 0, 2, 0, 0, 3, 0, 0, 0, 4, 1, 9, 0, 1, 8, 0, 0, 5, 7]);
        assert_eq!(
            (cursor.u8(), cursor.u16(), cursor.u24(), cursor.u32()),
            (Some(1), Some(2), Some(3), Some(4))
        );
        assert_eq!(cursor.vector8(), Some(&[9_u8][..]));
        assert_eq!(cursor.vector16(), Some(&[8_u8][..]));
        assert_eq!(cursor.vector24(), None, "five are announced, one is there");
        assert_eq!(cursor.rest(), [0, 0, 5, 7], "what can't be read is not read in part");
        assert_eq!((cursor.take(5), cursor.u32()), (None, Some(0x0507)));
        assert!(cursor.is_empty() && cursor.u8().is_none() && cursor.take_most(3).is_empty());
    }
}
