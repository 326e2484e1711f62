//! The kernels that the driver knows, by name, and others, of which it knows the parameters and which do nothing.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use crate::memory::kind_of;
use crate::{Code, ILLEGAL_ADDRESS, INVALID_HANDLE, INVALID_VALUE, SUCCESS, config};

/// Kernels with the sizes of their parameters.
pub const PARAMETERS: &[(&str, &[usize])] = &[
    ("affine", &[104, 16]),
    ("failing", &[104]),
    ("gate", &[104, 8]),
    ("large", &[104, 8]),
    ("empty", &[104]),
    ("crash", &[104]),
    ("printing", &[104, 8]),
    ("call_stack", &[104, 8]),
    ("raw_add", &[8, 8, 4]),
    ("oxisycl_fill_b8", &[312]),
    ("oxisycl_fill_b16", &[312]),
    ("oxisycl_fill_b32", &[312]),
    ("oxisycl_fill_b64", &[312]),
];

type Signature = (&'static str, &'static [usize]);

/// A kernel of one module.
struct Function {
    module: u64,
    signature: Signature,
    is_loaded: bool,
}

/// The functions that were asked for. A handle is the position plus one. It is never used again, unless `reuses_functions` is set.
static FUNCTIONS: Mutex<Vec<Function>> = Mutex::new(Vec::new());

/// The handle for a kernel of a module. `sizes` are those of a kernel that is not in the table.
pub fn handle(module: u64, name: &str, sizes: &[usize]) -> usize {
    let mut functions = FUNCTIONS.lock().unwrap();
    let is_same = |function: &Function| function.module == module && function.signature.0 == name;
    let index = functions.iter().position(is_same).unwrap_or_else(|| {
        let known = PARAMETERS.iter().find(|(known, _)| *known == name).copied();
        // Few, and for as long as the library is loaded.
        let signature = known.unwrap_or_else(|| (name.to_owned().leak(), sizes.to_vec().leak()));
        let made = Function { module, signature, is_loaded: true };
        let spare = functions.iter().position(|function| !function.is_loaded);
        if let Some(spare) = spare.filter(|_| config(|config| config.reuses_functions)) {
            // For tests.
            crate::count("reused function");
            functions[spare] = made;
            return spare;
        }
        functions.push(made);
        functions.len() - 1
    });
    index + 1
}

/// Invalidates the handles of a module.
pub fn unload(module: u64) {
    let mut functions = FUNCTIONS.lock().unwrap();
    functions.iter_mut().filter(|function| function.module == module).for_each(|function| function.is_loaded = false);
}

/// Name and parameter sizes of a function, or the error for a handle without a loaded module.
pub fn signature(function: usize) -> Result<Signature, Code> {
    let functions = FUNCTIONS.lock().unwrap();
    let found = function.checked_sub(1).and_then(|index| functions.get(index));
    found.filter(|found| found.is_loaded).map(|found| found.signature).ok_or(INVALID_HANDLE)
}

/// Kernels that ended after `cuLaunchKernel`.
pub static RAN_DIRECTLY: AtomicI64 = AtomicI64::new(0);
/// Kernels that ended after `cuGraphLaunch`.
pub static RAN_IN_GRAPHS: AtomicI64 = AtomicI64::new(0);

/// How many kernels that were launched directly have ended.
#[unsafe(no_mangle)]
pub extern "C" fn fake_ran_directly() -> i64 {
    RAN_DIRECTLY.load(Ordering::SeqCst)
}

/// How many kernels of launched graphs have ended.
#[unsafe(no_mangle)]
pub extern "C" fn fake_ran_in_graphs() -> i64 {
    RAN_IN_GRAPHS.load(Ordering::SeqCst)
}

#[derive(Clone)]
pub struct Kernel {
    pub name: &'static str,
    pub parameters: Vec<Vec<u8>>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
}

/// The first parameter of kernels of images.
struct Launch {
    begin: [u64; 3],
    offset: [u64; 3],
    end: [u64; 3],
    record: u64,
    print: u64,
    count: [u32; 3],
    call_stack: u32,
}

fn number(bytes: &[u8], index: usize) -> u64 {
    u64::from_ne_bytes(bytes[index * 8..][..8].try_into().unwrap())
}

impl Launch {
    fn read(bytes: &[u8]) -> Self {
        let three = |first| [number(bytes, first), number(bytes, first + 1), number(bytes, first + 2)];
        let counts = [number(bytes, 11), number(bytes, 12)];
        let count = [counts[0] as u32, (counts[0] >> 32) as u32, counts[1] as u32];
        let (record, print, call_stack) = (number(bytes, 9), number(bytes, 10), (counts[1] >> 32) as u32);
        Self { begin: three(0), offset: three(3), end: three(6), record, print, count, call_stack }
    }
}

impl Kernel {
    /// A launch with copies of its parameters, or the error of a launch that the driver refuses.
    ///
    /// # Safety
    /// There is one pointer for each parameter, as the driver API asks.
    pub unsafe fn new(
        function: usize,
        grid: [u32; 3],
        block: [u32; 3],
        parameters: *const *mut c_void,
    ) -> Result<Self, Code> {
        let threads: u64 = block.iter().map(|n| u64::from(*n)).product();
        let is_valid = grid.iter().chain(&block).all(|n| *n > 0)
            && grid[0] < 1 << 31
            && grid[1] <= 65_535
            && grid[2] <= 65_535
            && block[2] <= 64
            && threads <= config(|config| config.max_threads).max(256) as u64;
        if !is_valid {
            return Err(INVALID_VALUE);
        }
        let (name, sizes) = signature(function)?;
        if parameters.is_null() && !sizes.is_empty() {
            return Err(INVALID_VALUE);
        }
        let copied = sizes.iter().enumerate().map(|(index, size)| {
            // SAFETY: by the contract of this function.
            unsafe { std::slice::from_raw_parts((*parameters.add(index)).cast::<u8>(), *size).to_vec() }
        });
        Ok(Self { name, parameters: copied.collect(), grid, block })
    }

    /// Runs every thread, and counts the kernel.
    pub fn run_and_count(&self, count: &AtomicI64) -> Code {
        let code = self.run();
        count.fetch_add(1, Ordering::SeqCst);
        code
    }

    /// Runs every thread.
    fn run(&self) -> Code {
        if let Some(bits) = self.name.strip_prefix("oxisycl_fill_b") {
            return self.fill(bits.parse::<usize>().unwrap() / 8);
        }
        if self.name == "raw_add" {
            return self.raw_add();
        }
        let launch = Launch::read(&self.parameters[0]);
        let mut code = SUCCESS;
        self.for_each_thread(|[x, y, z]| {
            let (position, id) = ([z, y, x], [launch.begin[0] + z, launch.begin[1] + y, launch.begin[2] + x]);
            if code == SUCCESS && (0..3).all(|d| position[d] < u64::from(launch.count[d])) {
                code = self.item(&launch, id);
            }
        });
        code
    }

    fn for_each_thread(&self, mut f: impl FnMut([u64; 3])) {
        let threads: [u64; 3] = std::array::from_fn(|d| u64::from(self.grid[d]) * u64::from(self.block[d]));
        for z in 0..threads[2] {
            for y in 0..threads[1] {
                for x in 0..threads[0] {
                    f([x, y, z]);
                }
            }
        }
    }

    fn item(&self, launch: &Launch, id: [u64; 3]) -> Code {
        match self.name {
            "affine" => {
                let [z, y, x]: [u64; 3] = std::array::from_fn(|d| id[d] - launch.offset[d]);
                let [_, rows, columns]: [u64; 3] = std::array::from_fn(|d| launch.end[d] - launch.offset[d]);
                let index = (z * rows + y) * columns + x;
                let arguments = &self.parameters[1];
                let address = number(arguments, 0) + 4 * index;
                let factors = number(arguments, 1);
                if kind_of(address, 4).is_none() {
                    return ILLEGAL_ADDRESS;
                }
                // SAFETY: within an allocation, as was just checked; other users are kept away by the tests.
                let value = unsafe { &mut *(address as *mut u32) };
                let (factor, summand) = (factors as u32, (factors >> 32) as u32);
                *value = value.wrapping_mul(factor).wrapping_add(summand).wrapping_add(index as u32);
            }
            "failing" => panic_at(launch.record, id),
            "gate" => {
                // SAFETY: the tests pass the address of a live byte.
                let gate = unsafe { &*(number(&self.parameters[1], 0) as *const AtomicBool) };
                while !gate.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            }
            // An address of a place for a number, and 700 numbers.
            "large" => {
                let block = number(&self.parameters[1], 0);
                if kind_of(block, 8 * 701).is_none() {
                    return ILLEGAL_ADDRESS;
                }
                // SAFETY: within an allocation, as was just checked, which nothing writes meanwhile. The tests pass the address of a live number.
                unsafe {
                    let words = std::slice::from_raw_parts(block as *const u64, 701);
                    *(words[0] as *mut u64) = words[1..].iter().sum();
                }
            }
            "call_stack" => {
                // SAFETY: the tests pass the address of a live number.
                let found = unsafe { &*(number(&self.parameters[1], 0) as *const AtomicU32) };
                found.store(launch.call_stack, Ordering::Release);
            }
            "crash" => return ILLEGAL_ADDRESS,
            "printing" => return print_at(launch.print, id[2] as u32, number(&self.parameters[1], 0) as u32),
            _ => {}
        }
        SUCCESS
    }

    /// `y[i] = a * x[i] + y[i] + i`, of a program's own PTX.
    fn raw_add(&self) -> Code {
        let [x, y] = [0, 1].map(|index| number(&self.parameters[index], 0));
        let a = u32::from_ne_bytes(self.parameters[2][..].try_into().unwrap());
        let mut code = SUCCESS;
        let [_, rows, columns]: [u64; 3] =
            std::array::from_fn(|d| u64::from(self.grid[2 - d]) * u64::from(self.block[2 - d]));
        self.for_each_thread(|[i, j, k]| {
            let index = (k * rows + j) * columns + i;
            if kind_of(x + 4 * index, 4).is_none() || kind_of(y + 4 * index, 4).is_none() {
                code = ILLEGAL_ADDRESS;
                return;
            }
            // SAFETY: within allocations, as was just checked; other users are kept away by the tests.
            unsafe {
                let (x, y) = (((x + 4 * index) as *const u32).read(), ((y + 4 * index) as *mut u32));
                y.write(a.wrapping_mul(x).wrapping_add(y.read()).wrapping_add(index as u32));
            }
        });
        code
    }

    fn fill(&self, unit: usize) -> Code {
        let bytes = &self.parameters[0];
        let [target, row_pitch, slice_pitch, row_units, rows, slices] = std::array::from_fn(|i| number(bytes, i));
        let period = u64::from(number(bytes, 6) as u32);
        for slice in 0..slices {
            for row in 0..rows {
                let begin = target + slice * slice_pitch + row * row_pitch;
                if !begin.is_multiple_of(unit as u64) || kind_of(begin, row_units as usize * unit).is_none() {
                    return ILLEGAL_ADDRESS;
                }
                for index in 0..row_units {
                    let from = &bytes[56 + (index % period) as usize * unit..][..unit];
                    // SAFETY: within an allocation, as was just checked.
                    unsafe {
                        let to = (begin + index * unit as u64) as *mut u8;
                        from.as_ptr().copy_to_nonoverlapping(to, unit);
                    }
                }
            }
        }
        SUCCESS
    }
}

/// What a work-item does that prints site 1 with its id, so many times. More than a hundred times spoils the record.
fn print_at(buffer: u64, id: u32, times: u32) -> Code {
    if kind_of(buffer, 16).is_none() {
        return ILLEGAL_ADDRESS;
    }
    // SAFETY: the header is within an allocation, and the threads of a kernel run one after the other.
    let header = unsafe { &mut *(buffer as *mut [u32; 4]) };
    for _ in 0..times.min(100) {
        let [used, capacity, ..] = *header;
        if used + 40 > capacity {
            header[2] += 1;
            continue;
        }
        let at = buffer + 16 + u64::from(used);
        if kind_of(at, 40).is_none() {
            return ILLEGAL_ADDRESS;
        }
        // A record of 40 bytes with one value, whose kind is `u32`.
        let record: [u32; 10] = [if times > 100 { 7 } else { 40 }, 1, 1, 0, 11, 4, id, 0, 0, 0];
        // SAFETY: within an allocation, as was just checked.
        unsafe { (at as *mut [u32; 10]).write(record) };
        header[0] += 40;
    }
    SUCCESS
}

/// What a work-item does that panics: site 0, without values.
fn panic_at(record: u64, id: [u64; 3]) {
    // SAFETY: the backend passes the address of a record.
    unsafe {
        let state = &*(record as *const AtomicU32);
        if state.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            (record as *mut u32).add(1).write(0);
            (record as *mut u32).add(2).write(0);
            (record as *mut u32).add(3).write(0);
            (record as *mut [u64; 3]).byte_add(16).write(id);
            state.store(2, Ordering::Release);
        }
    }
}
