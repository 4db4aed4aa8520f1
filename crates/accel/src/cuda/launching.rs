//! A launch for each batch: several batches under way, each in a stream of its own, so that while one is copied another one is worked on.

use super::cache::Cache;
use super::driver::Context;
use super::memory::{OnDevice, Pinned};
use super::program::{Argument, Kernel, Mark, Program, Spread, Stream};
use super::tables::Tables;
use crate::copies::TableId;
use crate::device::{Completion, Device, Failure, Limits, Refusal, Rejected, Times};
use crate::gpu::Settings;
use crate::plan::{self, Plan};
use crate::task::{Batch, DESCRIPTOR, Kind, Task};
use std::sync::Arc;
use tables::Nanos;
use tables::image::{self, Changes, Image};

/// Threads of a block, in the kernels for light tasks.
const THREADS: usize = 256;

/// Octets that a plan needs at most, in front of a batch's items.
const PLAN_OCTETS: usize = 4096;

/// Where a batch is under way.
#[derive(Debug)]
struct Lane {
    /// First, for what is in it still uses the memory.
    stream: Stream,
    host_in: Pinned,
    host_out: Pinned,
    input: OnDevice,
    output: OnDevice,
    /// Memory of code blocks, if a block of threads hasn't got enough.
    workspace: Option<OnDevice>,
    batch: Option<Under>,
}

/// A batch under way.
#[derive(Debug)]
struct Under {
    batch: Batch,
    submitted: Nanos,
    version: Option<u64>,
}

/// The kernels.
#[derive(Debug)]
struct Kernels {
    hash: Kernel,
    nea2: Kernel,
    /// By kind of table, as the image numbers them, from 1 on.
    look_up: [Kernel; 6],
    decode: Kernel,
    encode: Kernel,
}

/// The device.
#[derive(Debug)]
pub struct Launching {
    name: String,
    context: Arc<Context>,
    kernels: Kernels,
    lanes: Vec<Lane>,
    limits: Limits,
    tables: Tables,
    failed: Option<Failure>,
}

impl Launching {
    /// On that GPU. All memory is taken now.
    pub fn start(context: &Arc<Context>, cache: Option<&Cache>, settings: Settings) -> Result<Self, Failure> {
        let light = Program::load(context, cache, "batch.cu")?;
        let ldpc = Program::load(context, cache, "ldpc.cu")?;
        let kernels = Kernels {
            hash: light.kernel("hash")?,
            nea2: light.kernel("nea2")?,
            look_up: [
                light.kernel("look_up_flow4")?,
                light.kernel("look_up_flow6")?,
                light.kernel("look_up_link")?,
                light.kernel("look_up_lpm4")?,
                light.kernel("look_up_lpm6")?,
                light.kernel("look_up_memo")?,
            ],
            decode: ldpc.kernel("ldpc_decode")?,
            encode: ldpc.kernel("ldpc_encode")?,
        };
        let shared = context.gpu().shared_memory;
        kernels.decode.allow_shared(shared)?;
        kernels.encode.allow_shared(shared)?;
        let input = settings.input.next_multiple_of(16) + PLAN_OCTETS;
        let output = settings.output.next_multiple_of(16);
        let lane = || -> Result<Lane, Failure> {
            let needed = plan::most_decoding_octets();
            let workspace = (needed > shared)
                .then(|| OnDevice::new(context, needed * WORKSPACES, "code blocks"))
                .transpose()?;
            Ok(Lane {
                host_in: Pinned::new(context, input / 8, "a batch's input")?,
                host_out: Pinned::new(context, output.div_ceil(8), "a batch's output")?,
                input: OnDevice::new(context, input, "a batch's input")?,
                output: OnDevice::new(context, output, "a batch's output")?,
                workspace,
                stream: Stream::new(context)?,
                batch: None,
            })
        };
        Ok(Self {
            name: format!("cuda{}", context.gpu().number),
            lanes: (0..settings.in_flight.max(1)).map(|_| lane()).collect::<Result<_, _>>()?,
            limits: Limits {
                kinds: Kind::ALL.to_vec(),
                in_flight: settings.in_flight.max(1),
                items: 1 << 22,
                // Between items and data there may be a gap.
                input: settings.input.saturating_sub(16),
                output: settings.output,
            },
            tables: Tables::new(context, settings.tables)?,
            context: Arc::clone(context),
            kernels,
            failed: None,
        })
    }

    fn launch(&self, lane: &Lane, batch: &Batch) -> Result<(), Failure> {
        // A plan, if there is one, then the items, then the data.
        let items_at = |plan: usize| lane.input.address() + plan as u64;
        let count = Argument::Int(batch.len() as u32);
        let (items, output) = (Argument::Long(items_at(0)), Argument::Long(lane.output.address()));
        let spread = |threads: usize| Spread {
            blocks: threads.div_ceil(THREADS).clamp(1, MOST_BLOCKS),
            threads: THREADS,
            shared: 0,
        };
        match batch.task() {
            Task::Hash(hashes) => {
                let arguments = [items, count, Argument::Int(u32::from(hashes.get())), output];
                // SAFETY: `hash(items, count, hashes, output)`: as many items and answers as there are lie in the lane's buffers, whose size was
                // compared with the batch's. They stay until the stream has come to its mark.
                unsafe { self.kernels.hash.launch(&lane.stream, spread(batch.len()), &arguments) }
            }
            Task::Nea2 => {
                let lanes = lanes(batch);
                let data = Argument::Long(items_at(batch.len() * DESCRIPTOR));
                let octets = Argument::Int(batch.data().len() as u32);
                let arguments = [items, count, data, octets, output, Argument::Int(lanes as u32)];
                // SAFETY: `nea2(items, count, data, data_octets, output, lanes)`; as above. `lanes` divides the threads of a block.
                unsafe { self.kernels.nea2.launch(&lane.stream, spread(batch.len() * lanes), &arguments) }
            }
            Task::Lookup(lookup) => {
                let header = self.tables.address(lookup.table).ok_or(Failure::NoTable(lookup.table))?;
                let arguments = [Argument::Long(header), items, count, output];
                let kernel = match lookup.kind {
                    image::Kind::Flow4 => &self.kernels.look_up[0],
                    image::Kind::Flow6 => &self.kernels.look_up[1],
                    image::Kind::Link => &self.kernels.look_up[2],
                    image::Kind::Lpm4 => &self.kernels.look_up[3],
                    image::Kind::Lpm6 => &self.kernels.look_up[4],
                    image::Kind::Memo => &self.kernels.look_up[5],
                };
                // SAFETY: `look_up_*(header, items, count, output)`; as above. Copies stay as long as the device.
                unsafe { kernel.launch(&lane.stream, spread(batch.len()), &arguments) }
            }
            Task::LdpcDecode(_) | Task::LdpcEncode(_) => self.launch_blocks(lane, batch),
        }
    }

    /// A block of threads for each code block.
    fn launch_blocks(&self, lane: &Lane, batch: &Batch) -> Result<(), Failure> {
        let Some((plan, decode)) = plan_of(batch.task()) else { return Ok(()) };
        let needed = if decode { plan.decoding_octets() } else { plan.encoding_octets() };
        let needed = needed.next_multiple_of(16);
        let kernel = if decode { &self.kernels.decode } else { &self.kernels.encode };
        let (workspace, stride, shared, most) = match &lane.workspace {
            Some(workspace) if needed > self.context.gpu().shared_memory => {
                (workspace.address(), needed, 0, workspace.octets() / needed)
            }
            _ => (0, 0, needed, MOST_BLOCKS),
        };
        let spread = Spread {
            blocks: batch.len().clamp(1, most.max(1)),
            threads: plan.threads().next_multiple_of(32),
            shared,
        };
        let arguments = [
            Argument::Long(lane.input.address()),
            Argument::Long(lane.input.address() + plan_octets(&plan) as u64),
            Argument::Long(lane.output.address()),
            Argument::Int(batch.len() as u32),
            Argument::Long(workspace),
            Argument::Long(stride as u64),
        ];
        // SAFETY: `ldpc_*(plan, items, output, blocks, workspace, stride)`: plan and items lie one after the other in the lane's input, whose size was compared
        // with theirs, and so was the output's. A block of threads has `needed` octets, shared or in the workspace.
        unsafe { kernel.launch(&lane.stream, spread, &arguments) }
    }

    /// Copies the batch in, has it worked on, and copies what comes out back: all of it in the stream.
    fn begin(&mut self, at: usize, batch: &Batch) -> Result<(), Failure> {
        self.context.enter()?;
        let lane = &mut self.lanes[at];
        let mut place = 0;
        if let Some((plan, _)) = plan_of(batch.task()) {
            let words: Vec<u8> = plan.words().iter().flat_map(|word| word.to_le_bytes()).collect();
            lane.host_in.write(0, &words);
            place = plan_octets(&plan);
        }
        lane.host_in.write(place, batch.items());
        // Only packets have data, and their items end at a multiple of 16.
        lane.host_in.write(place + batch.items().len(), batch.data());
        let octets = place + batch.input_octets();
        let lane = &self.lanes[at];
        // SAFETY: both buffers have as many octets: the batch's size was compared with the limits.
        unsafe { lane.stream.copy_in(lane.input.address(), lane.host_in.address(), octets)? };
        // Between these two marks is the kernel alone, without what the bus takes.
        lane.stream.mark(Mark::Begun)?;
        self.launch(lane, batch)?;
        lane.stream.mark(Mark::Worked)?;
        let octets = batch.output().len();
        // SAFETY: as above.
        unsafe { lane.stream.copy_out(lane.host_out.address(), lane.output.address(), octets)? };
        lane.stream.mark(Mark::Ended)
    }

    fn fail(&mut self, failure: &Failure, now: Nanos, ended: &mut Vec<Completion>) {
        self.failed.get_or_insert(failure.clone());
        ended.extend(
            self.lanes
                .iter_mut()
                .filter_map(|lane| lane.batch.take())
                .map(|under| Completion::failed(under.batch, failure.clone(), under.submitted, now)),
        );
    }
}

/// Blocks of threads of a launch: more than any GPU runs at a time.
const MOST_BLOCKS: usize = 4096;

/// Code blocks at a time on a GPU whose shared memory is too small for them.
const WORKSPACES: usize = 64;

/// Threads for each packet of a batch: as many as its longest packet has blocks of 16 octets, but no more than a warp, and a divisor of it.
fn lanes(batch: &Batch) -> usize {
    let longest = batch.descriptors().map(|descriptor| descriptor.length).max().unwrap_or(0);
    longest.div_ceil(16).next_power_of_two().clamp(1, 32)
}

fn plan_of(task: &Task) -> Option<(Plan, bool)> {
    match task {
        Task::LdpcDecode(decoding) => Some((Plan::decode(decoding), true)),
        Task::LdpcEncode(code) => Some((Plan::encode(*code), false)),
        _ => None,
    }
}

fn plan_octets(plan: &Plan) -> usize {
    (4 * plan.words().len()).next_multiple_of(16)
}

impl Device for Launching {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn submit(&mut self, batch: Batch, now: Nanos) -> Result<(), Rejected> {
        if let Err(why) = self.accepts(&batch) {
            return Err(Rejected { batch, why });
        }
        if let Some(failure) = &self.failed {
            return Err(Rejected { batch, why: Refusal::Failed(failure.clone()) });
        }
        if let Task::Lookup(lookup) = batch.task()
            && self.tables.address(lookup.table).is_none()
        {
            return Err(Rejected { batch, why: Refusal::NoTable });
        }
        let Some(at) = self.lanes.iter().position(|lane| lane.batch.is_none()) else {
            return Err(Rejected { batch, why: Refusal::Full });
        };
        let version = self.tables.version(batch.task());
        if let Err(failure) = self.begin(at, &batch) {
            // Part of it may be in the stream, so the lane isn't used again before the device is revived.
            self.failed = Some(failure.clone());
            return Err(Rejected { batch, why: Refusal::Broken(failure) });
        }
        self.lanes[at].batch = Some(Under { batch, submitted: now, version });
        Ok(())
    }

    fn poll(&mut self, now: Nanos, ended: &mut Vec<Completion>) -> usize {
        let before = ended.len();
        if self.in_flight() == 0 {
            return 0;
        }
        let mut failure = self.context.enter().err();
        self.tables.settle();
        for lane in &mut self.lanes {
            if failure.is_some() {
                break;
            }
            let Some(under) = &lane.batch else { continue };
            match lane.stream.has_passed(Mark::Ended) {
                Ok(false) => {}
                Ok(true) => {
                    let steady = self.tables.is_steady(under.batch.task(), under.version);
                    let Some(Under { mut batch, submitted, .. }) = lane.batch.take() else { continue };
                    lane.host_out.read(0, batch.parts().2);
                    // The GPU's clock isn't ours: what it tells is how long it worked.
                    let started = Nanos(now.0.saturating_sub(lane.stream.worked())).max(submitted);
                    let times = Times { submitted, started, ended: now.max(started) };
                    ended.push(Completion { batch, outcome: Ok(()), times, steady });
                }
                Err(why) => failure = Some(why),
            }
        }
        if let Some(failure) = failure {
            self.fail(&failure, now, ended);
        }
        ended.len() - before
    }

    fn in_flight(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.batch.is_some()).count()
    }

    fn abandon(&mut self, now: Nanos, ended: &mut Vec<Completion>) {
        self.poll(now, ended);
        self.fail(&Failure::Abandoned, now, ended);
    }

    /// Goes on once the GPU has come to the end of all that it was given: until then it may still write to the buffers.
    fn revive(&mut self, _now: Nanos) -> Result<(), Failure> {
        let Some(failed) = self.failed.clone() else { return Ok(()) };
        self.context.enter()?;
        for lane in &self.lanes {
            // Behind all that is in the stream.
            lane.stream.mark(Mark::Ended)?;
            if !lane.stream.has_passed(Mark::Ended)? {
                return Err(failed);
            }
        }
        self.failed = None;
        Ok(())
    }

    fn follow(&mut self, table: TableId, image: &dyn Image, changes: &Changes) -> Result<(), Failure> {
        self.tables.follow(table, image, changes)
    }
}
