//! Packet flow descriptions: how an application is told, as an SMF provisions it.

use super::wire::{Fields, Wire, flag, write_counted};
use crate::error::Fault;

/// PFD Contents (§8.2.39). The first of a list goes into its own field, the others into the "additional" one;
/// to the reader they are one list. Texts are as they came.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PfdContents<'a> {
    /// FD and AFD: IPFilterRule texts.
    pub flow_descriptions: Vec<&'a [u8]>,
    /// URL and AURL: regular expressions over URLs.
    pub urls: Vec<&'a [u8]>,
    /// DN with DNP, and ADNP: domain names, each with the protocol whose names they are.
    pub domain_names: Vec<(&'a [u8], Option<&'a [u8]>)>,
    /// CP: custom content.
    pub custom: Option<&'a [u8]>,
}

/// Takes the entries of an additional list: each is led by its count, the whole by its own.
fn more<'a>(
    fields: &mut Fields<'a>,
    mut entry: impl FnMut(&mut Fields<'a>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut inner = Fields(fields.counted()?);
    while !inner.0.is_empty() {
        entry(&mut inner)?;
    }
    Ok(())
}

fn write_more(out: &mut Vec<u8>, entries: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    entries(&mut inner);
    write_counted(out, &inner);
}

impl<'a> Wire<'a> for PfdContents<'a> {
    fn read(value: &'a [u8]) -> Result<Self, Fault> {
        let mut fields = Fields(value);
        let [flags, _spare] = fields.array()?;
        let set = |bit: u8| flags & 1 << bit != 0;
        let mut pfd = Self::default();
        pfd.flow_descriptions.extend(fields.when(set(0), Fields::counted)?);
        pfd.urls.extend(fields.when(set(1), Fields::counted)?);
        let name = fields.when(set(2), Fields::counted)?;
        pfd.custom = fields.when(set(3), Fields::counted)?;
        let protocol = fields.when(set(4), Fields::counted)?;
        pfd.domain_names.extend(name.map(|name| (name, protocol)));
        if set(5) {
            more(&mut fields, |inner| {
                pfd.flow_descriptions.push(inner.counted()?);
                Ok(())
            })?;
        }
        if set(6) {
            more(&mut fields, |inner| {
                pfd.urls.push(inner.counted()?);
                Ok(())
            })?;
        }
        if set(7) {
            more(&mut fields, |inner| {
                let name = inner.counted()?;
                let protocol = inner.counted()?;
                pfd.domain_names.push((name, Some(protocol).filter(|protocol| !protocol.is_empty())));
                Ok(())
            })?;
        }
        Ok(pfd)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let (flow, flows) = split(&self.flow_descriptions);
        let (url, urls) = split(&self.urls);
        let (name, names) = split(&self.domain_names);
        let protocol = name.and_then(|(_, protocol)| protocol);
        out.extend_from_slice(&[
            flag(flow.is_some(), 0)
                | flag(url.is_some(), 1)
                | flag(name.is_some(), 2)
                | flag(self.custom.is_some(), 3)
                | flag(protocol.is_some(), 4)
                | flag(!flows.is_empty(), 5)
                | flag(!urls.is_empty(), 6)
                | flag(!names.is_empty(), 7),
            0,
        ]);
        for field in [flow, url, name.map(|(name, _)| name), self.custom, protocol].into_iter().flatten() {
            write_counted(out, field);
        }
        for list in [flows, urls].into_iter().filter(|list| !list.is_empty()) {
            write_more(out, |out| list.iter().for_each(|field| write_counted(out, field)));
        }
        if !names.is_empty() {
            write_more(out, |out| {
                for (name, protocol) in names {
                    write_counted(out, name);
                    write_counted(out, protocol.unwrap_or_default());
                }
            });
        }
    }
}

fn split<T: Copy>(list: &[T]) -> (Option<T>, &[T]) {
    list.split_first().map_or((None, &[]), |(first, rest)| (Some(*first), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_each() {
        let bytes = b"\x1f\0\0\x01f\0\x01u\0\x01d\0\x01c\0\x01p";
        let pfd = PfdContents {
            flow_descriptions: vec![b"f"],
            urls: vec![b"u"],
            domain_names: vec![(b"d", Some(b"p"))],
            custom: Some(b"c"),
        };
        assert_eq!(PfdContents::read(bytes).as_ref(), Ok(&pfd));
        let mut out = Vec::new();
        pfd.write(&mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn several_flows() {
        let bytes = b"\x21\0\0\x01f\0\x07\0\x01g\0\x02hi";
        let pfd = PfdContents { flow_descriptions: vec![b"f", b"g", b"hi"], ..PfdContents::default() };
        assert_eq!(PfdContents::read(bytes).as_ref(), Ok(&pfd));
        let mut out = Vec::new();
        pfd.write(&mut out);
        assert_eq!(out, bytes);
        assert_eq!(PfdContents::read(b"\x20\0\0\x02\0\x01"), Err(Fault::Length));
    }
}
