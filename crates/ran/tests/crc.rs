//! CRCs against long division.

use crate::standard;
use proptest::prelude::*;
use ran::crc::Crc;

proptest! {
    #[test]
    fn parity_bits_are_what_long_division_leaves(message in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..8) {
        let bits = (message.len() * 8).saturating_sub(cut);
        for crc in Crc::ALL {
            let parity = standard::crc(crc, &standard::unpack(&message, bits));
            let number = parity.iter().fold(0, |number, &bit| number << 1 | u32::from(bit));
            prop_assert_eq!(crc.of(&message, bits), number, "{:?} of {} bits", crc, bits);
            prop_assert_eq!(parity.len(), crc.bits());
            // With its parity bits behind it, nothing is left.
            let whole = [standard::unpack(&message, bits), parity].concat();
            prop_assert_eq!(crc.of(&standard::pack(&whole), whole.len()), 0);
        }
    }
}
