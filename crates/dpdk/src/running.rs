//! A DPDK port that has been started, and may be started again with other queues as long as nobody polls it.

use crate::device::{Device, step};
use crate::ffi::{self, PortConfig, RawFlowError, RteFlowRule};
use crate::flow::answer;
use crate::pool::PoolHandle;
use crate::spread::{Spread, Spreading};
use crate::steer::{Nic, Rule, Spreads, Stopped};
use io::steering::Steering;
use std::ptr::NonNull;
use std::sync::Arc;

/// A device that runs, with its ordinary queues or with those that steering adds.
pub(crate) struct Running<'a> {
    device: &'a Arc<Device>,
    pool: &'a PoolHandle,
    config: PortConfig,
    spreading: Spreading,
}

impl<'a> Running<'a> {
    /// Starts a port that was attached, with its ordinary queues.
    pub(crate) fn start(
        device: &'a Arc<Device>,
        pool: &'a PoolHandle,
        config: PortConfig,
    ) -> Result<Self, Stopped> {
        let mut running = Self { device, pool, config, spreading: Spreading::none() };
        running.run(config.queues, 0)?;
        Ok(running)
    }

    fn run(&mut self, rx_queues: u16, rank: u8) -> Result<(), Stopped> {
        let config = PortConfig { rx_queues, ..self.config };
        let mut step = std::ptr::null();
        let port = self.device.port();
        // SAFETY: the port exists and is not started, `config` is read only during the call, the pool lives as long as the device.
        let errno = unsafe { ffi::mr_port_start(port, &raw const config, self.pool.raw(), &raw mut step) };
        if errno != 0 {
            return Err(Stopped { step: self::step(step), errno });
        }
        self.spreading = Spreading::ask(self.device, config.queues, rank);
        Ok(())
    }

    pub(crate) fn into_spreading(self) -> Spreading {
        self.spreading
    }
}

impl Nic for Running<'_> {
    type Taken = Installed;

    fn restart(&mut self, steering: &Steering, rank: u8) -> Result<(), Stopped> {
        // Its rules go before the port stops: drivers differ in what becomes of them then.
        self.spreading = Spreading::none();
        // SAFETY: the port is open; no queue of it has been taken yet.
        let errno = unsafe { ffi::mr_port_stop(self.device.port()) };
        if errno != 0 {
            return Err(Stopped { step: "stopping it".into(), errno });
        }
        self.run(self.config.queues + steering.extra_queues(self.config.queues) as u16, rank)
    }

    fn spreads(&self) -> Spreads {
        Spreads {
            by_subscriber: self.spreading.by_subscriber(),
            port_hash: matches!(self.spreading.spread, Spread::One | Spread::Table),
            table: self.spreading.entries > 0,
            follows: self.spreading.per_shard(),
        }
    }

    fn would(&self, rule: &Rule) -> Result<(), String> {
        let (raw, mut error) = (rule.raw(), RawFlowError::NONE);
        // SAFETY: the port is open; the rule points at nothing but a key that is always there.
        unsafe { ffi::mr_steer_validate(self.device.port(), &raw const raw, &raw mut error) };
        answer(&error)
    }

    fn take(&self, rule: &Rule) -> Result<Installed, String> {
        let (raw, mut error) = (rule.raw(), RawFlowError::NONE);
        // SAFETY: as above; DPDK copies what it keeps.
        let flow = unsafe { ffi::mr_steer_create(self.device.port(), &raw const raw, &raw mut error) };
        answer(&error)?;
        let flow = NonNull::new(flow).ok_or("no rule came back")?;
        Ok(Installed { device: Arc::clone(self.device), flow })
    }
}

/// A rule that a device has; it goes when this goes.
#[derive(Debug)]
pub(crate) struct Installed {
    device: Arc<Device>,
    flow: NonNull<RteFlowRule>,
}

// SAFETY: the pointer is DPDK's name of a rule, used only to destroy it; the flow API takes a lock of the port's, so the thread
// doesn't matter.
unsafe impl Send for Installed {}

impl Drop for Installed {
    fn drop(&mut self) {
        let mut error = RawFlowError::NONE;
        // SAFETY: the port is open as long as `device` lives; the rule was created there and is destroyed here alone. Closing the
        // port forgets what can't be destroyed.
        unsafe { ffi::mr_flow_destroy(self.device.port(), self.flow.as_ptr(), &raw mut error) };
    }
}
