//! When is what was sent on the wire?

use crate::worker::{Transmit, Worker};
use io::{Frame, Port, TxQueue};

/// A point in what goes out of each port: behind everything that was sent, or waited to be sent, when it was made.
#[derive(Debug)]
pub(crate) struct SendMark(Vec<PortMark>);

#[derive(Debug)]
enum PortMark {
    /// By class: frames that have to leave the queue first.
    Waiting(Box<[u64]>),
    /// Frames that the port had taken when nothing before the mark waited any more.
    Taken(u64),
}

/// Another worker, which does not send itself, wants to know when its frames are on the wire.
#[derive(Debug)]
pub(crate) struct Flush {
    pub worker: usize,
    pub number: u64,
    pub mark: SendMark,
}

impl SendMark {
    /// Whether everything before the mark is on the wire, as far as the ports can tell.
    fn is_passed<T: TxQueue<Frame = F>, F: Frame>(&mut self, transmit: &[Transmit<T, F>]) -> bool {
        self.0.iter_mut().zip(transmit).all(|(mark, Transmit { tx, waiting, given })| {
            if let PortMark::Waiting(classes) = mark
                && waiting.has_sent(classes)
            {
                *mark = PortMark::Taken(*given);
            }
            matches!(mark, PortMark::Taken(taken) if given - tx.unsent() as u64 >= *taken)
        })
    }
}

impl<P: Port> Worker<P> {
    /// Everything up to now.
    pub(crate) fn send_mark(&self) -> SendMark {
        SendMark(self.transmit.iter().map(|one| PortMark::Waiting(one.waiting.mark())).collect())
    }

    pub(crate) fn has_sent(&self, mark: &mut SendMark) -> bool {
        mark.is_passed(&self.transmit)
    }
}
