//! Which bytes of a buffer an accessor names, and which pages it therefore requires.

use std::ptr::NonNull;
use std::sync::Arc;

use oxisycl_backend::{Device, MemoryId};
use oxisycl_types::{AccessMode, ErrorCode};
use smallvec::SmallVec;

use crate::memory::{Allocation, BufferCore, OpenHold};
use crate::state::{AllocationIdx, Region, RegionMap, coalesce_slice, decompose_interval};
use crate::{Error, Result};

/// Up to this many rows of a strided access to a reshaped buffer are tracked one by one. With more rows, everything
/// from the first to the last byte counts as accessed.
const MAX_ROWS: usize = 1024;

/// Disjoint boxes of a buffer in its base coordinates, the innermost in bytes.
pub type Regions = SmallVec<[Region; 1]>;

/// A way of looking at a buffer: as it was made, as a sub-buffer, or with other elements or another shape.
#[derive(Clone)]
pub struct BufferView {
    /// The buffer.
    pub core: Arc<BufferCore>,
    /// First byte of the view within the buffer.
    pub byte_offset: usize,
    /// Extent in elements.
    pub extent: [usize; 3],
    /// Size of an element in bytes.
    pub element_size: usize,
    /// The region of a sub-buffer; accessors of it require all of it rather than all of the buffer.
    pub sub_buffer: Option<Regions>,
}

/// What one accessor asks of the scheduler.
pub struct Requirement {
    /// The buffer, whose pointers stay valid until the command group is submitted.
    pub hold: OpenHold,
    /// First byte of the buffer's allocation that is used.
    pub pointer: Address,
    /// The bytes that may be accessed.
    pub bytes: Regions,
    /// Whether `bytes` is exact; else it is a superset.
    pub is_exact: bool,
    /// The pages that the accessor requires.
    pub pages: Regions,
    /// How.
    pub mode: AccessMode,
    /// The old contents of `bytes` are not needed.
    pub no_init: bool,
    /// The memory in which the data is used.
    pub memory: MemoryId,
    /// The buffer's allocation that is used.
    pub allocation: AllocationIdx,
}

/// The address of an allocation, which by itself gives no access to it.
#[derive(Clone, Copy)]
pub struct Address(NonNull<u8>);

// SAFETY: a plain value. Who uses the memory behind it answers for that.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    /// The first byte.
    pub fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }
}

impl BufferView {
    /// The whole of a new buffer.
    pub fn whole(core: Arc<BufferCore>, extent: [usize; 3], element_size: usize) -> Self {
        Self { core, byte_offset: 0, extent, element_size, sub_buffer: None }
    }

    /// Size in bytes.
    pub fn byte_size(&self) -> usize {
        self.extent.iter().product::<usize>() * self.element_size
    }

    /// The bytes of a box of elements, and whether they are exactly those.
    pub fn bytes_of(&self, elements: &Region) -> (Regions, bool) {
        if elements.is_empty() {
            return (Regions::new(), true);
        }
        let base = self.core.extent;
        let [_, rows, _] = self.extent;
        let row_bytes = self.extent[2] * self.element_size;
        let in_bytes = Region::new(
            [elements.begin[0], elements.begin[1], elements.begin[2] * self.element_size],
            [elements.end[0], elements.end[1], elements.end[2] * self.element_size],
        );
        if self.byte_offset == 0 && row_bytes == base[2] && (rows == base[1] || self.extent[0] == 1 && rows <= base[1])
        {
            return (SmallVec::from_buf([in_bytes]), true);
        }
        let space = [self.extent[0], rows, row_bytes];
        let (interval, is_exact) = match in_bytes.contiguous_interval(space) {
            Some(interval) => (interval, true),
            None => {
                let position = |at: [usize; 3]| (at[0] * rows + at[1]) * row_bytes + at[2];
                let last = [in_bytes.end[0] - 1, in_bytes.end[1] - 1, in_bytes.end[2] - 1];
                ((position(in_bytes.begin), position(last) + 1), false)
            }
        };
        if !is_exact && let Some(shifted) = self.shifted_rows(&in_bytes, row_bytes) {
            return (SmallVec::from_buf([shifted]), true);
        }
        if !is_exact && let Some(rows) = self.rows_of(&in_bytes, space) {
            return (rows, true);
        }
        let begin = self.byte_offset + interval.0;
        let end = self.byte_offset + interval.1;
        (decompose_interval(begin, end, base).into_iter().collect(), is_exact)
    }

    /// The rows of a strided box, if there are not too many to list.
    fn rows_of(&self, in_bytes: &Region, space: [usize; 3]) -> Option<Regions> {
        let [slices, rows, _] = in_bytes.extent();
        if slices.saturating_mul(rows) > MAX_ROWS {
            return None;
        }
        let mut regions = Regions::new();
        for z in in_bytes.begin[0]..in_bytes.end[0] {
            for y in in_bytes.begin[1]..in_bytes.end[1] {
                let row = self.byte_offset + (z * space[1] + y) * space[2];
                let (begin, end) = (row + in_bytes.begin[2], row + in_bytes.end[2]);
                regions.extend(decompose_interval(begin, end, self.core.extent));
            }
        }
        let n_regions = coalesce_slice(&mut regions);
        regions.truncate(n_regions);
        Some(regions)
    }

    /// A strided box of a sub-buffer made of whole rows is the same box some rows further down.
    fn shifted_rows(&self, in_bytes: &Region, row_bytes: usize) -> Option<Region> {
        let base = self.core.extent;
        if row_bytes != base[2] || !self.byte_offset.is_multiple_of(row_bytes.max(1)) {
            return None;
        }
        let first_row = self.byte_offset / row_bytes;
        let (slice, row) = (first_row / base[1], first_row % base[1]);
        let fits = (self.extent[0] == 1 && row + in_bytes.end[1] <= base[1]) || (row == 0 && self.extent[1] == base[1]);
        fits.then(|| {
            let [z, y, x] = in_bytes.begin;
            let [z_end, y_end, x_end] = in_bytes.end;
            Region::new([slice + z, row + y, x], [slice + z_end, row + y_end, x_end])
        })
    }

    /// The pages that an access to `bytes` requires (a sub-buffer's accessor requires the sub-buffer).
    fn pages_of(&self, bytes: &Regions) -> Regions {
        if bytes.is_empty() {
            return Regions::new();
        }
        if !self.core.has_pages {
            return match &self.sub_buffer {
                Some(region) => region.clone(),
                None => SmallVec::from_buf([self.core.whole()]),
            };
        }
        if let [region] = bytes[..] {
            return SmallVec::from_buf([self.core.page_range(&region)]);
        }
        // Page ranges of disjoint boxes may overlap, and what is missing must be missing once.
        let mut map = RegionMap::new(self.core.extent, false);
        for region in bytes {
            map.update(&self.core.page_range(region), |_, is_required| *is_required = true);
        }
        let mut pages: Regions =
            map.iter().filter(|(_, is_required)| **is_required).map(|(region, _)| region).collect();
        let n_regions = coalesce_slice(&mut pages);
        pages.truncate(n_regions);
        pages
    }

    /// The requirement of an accessor to `elements` on `device`, whose memory gets an allocation if it has none.
    ///
    /// Errors: `Invalid` if `elements` is not inside the view; the allocation's error.
    pub fn require(
        &self,
        elements: &Region,
        mode: AccessMode,
        no_init: bool,
        device: &Arc<dyn Device>,
    ) -> Result<Requirement> {
        let mut list = SmallVec::<[Requirement; 4]>::new();
        self.add_requirement(elements, mode, no_init, device, &mut list)?;
        Ok(list.remove(0))
    }

    /// Adds a requirement to the list of a group, as [`require`](Self::require) gives it.
    ///
    /// Errors as for [`require`](Self::require).
    pub fn add_requirement(
        &self,
        elements: &Region,
        mode: AccessMode,
        no_init: bool,
        device: &Arc<dyn Device>,
        list: &mut SmallVec<[Requirement; 4]>,
    ) -> Result {
        if mode == AccessMode::Read && no_init {
            return Err(Error::invalid(format!("property no_init does not go with read access to {}", self.core)));
        }
        if (0..3).any(|d| elements.end[d] > self.extent[d]) {
            let extent = [0, 1, 2].map(|d| elements.end[d] - elements.begin[d].min(elements.end[d]));
            return Err(Error::new(
                ErrorCode::Invalid,
                format!(
                    "accessor range {extent:?} at offset {:?} is outside {} with range {:?}",
                    elements.begin, self.core, self.extent
                ),
            ));
        }
        let (bytes, is_exact) = self.bytes_of(elements);
        let pages = self.pages_of(&bytes);
        let mut state = self.core.lock();
        let allocation = state.ensure(&self.core, device)?;
        let Allocation { memory, pointer, .. } = *state.allocation(allocation);
        list.push(Requirement {
            hold: state.open(&self.core),
            pointer: Address(pointer),
            bytes,
            is_exact,
            pages,
            mode,
            no_init: no_init && is_exact,
            memory,
            allocation,
        });
        Ok(())
    }
}

impl Requirement {
    /// The buffer.
    pub fn core(&self) -> &Arc<BufferCore> {
        self.hold.core()
    }

    /// Says that the command stores to every byte from `first` to `last`, `n_bytes` in all. If the accessor names
    /// exactly these bytes, the old contents are not needed.
    pub fn discard_if_overwritten(&mut self, first: *const u8, last: *const u8, n_bytes: usize) {
        let (Some(begin), Some(end)) = (self.bytes.first(), self.bytes.last()) else { return };
        if !self.mode.writes() || !self.is_exact || self.bytes.iter().map(Region::size).sum::<usize>() != n_bytes {
            return;
        }
        let [_, rows, row] = self.core().extent;
        let pointer = self.pointer.as_ptr().cast_const();
        let address = |at: [usize; 3]| pointer.wrapping_add((at[0] * rows + at[1]) * row + at[2]);
        if address(begin.begin) == first && address(end.end.map(|n| n - 1)) == last {
            self.no_init = true;
        }
    }

    /// Whether one command group cannot have both. That is so if both name a byte and one of them writes, or if both
    /// write to one page in different memories. Only one memory could hold the page afterwards.
    pub fn conflicts_in_group(&self, other: &Self) -> bool {
        if !Arc::ptr_eq(self.core(), other.core()) {
            return false;
        }
        let (a, b) = (self.mode.writes(), other.mode.writes());
        (a || b) && overlap(&self.bytes, &other.bytes)
            || (a && b && self.memory != other.memory && overlap(&self.pages, &other.pages))
    }
}

fn overlap(a: &Regions, b: &Regions) -> bool {
    a.iter().any(|a| b.iter().any(|b| a.overlaps(b)))
}
