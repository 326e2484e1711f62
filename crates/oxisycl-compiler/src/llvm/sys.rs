//! The functions of LLVM's C API that the compiler uses, found by name in the toolchain's own library.
//!
//! Types are opaque pointers. Signatures are those of LLVM 22 (`llvm-c/*.h`); a library that lacks one of the names is refused.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::Library;

macro_rules! opaque {
    ($($name:ident,)*) => { $(
        #[repr(C)]
        pub(crate) struct $name { _opaque: [u8; 0] }
    )* };
}

opaque! { Context, Module, Type, Value, BasicBlock, Builder, MemoryBuffer, Attribute, TargetMachine, TargetData, Target, PassOptions, Error, Use, Disassembler, }

pub(crate) type Bool = c_int;
pub(crate) type DiagnosticHandler = extern "C" fn(*mut c_void, *mut c_void);
/// Asked for the name of a value: its data, the value, what refers to it, the instruction's address, and a place for a comment.
pub(crate) type SymbolLookup = extern "C" fn(*mut c_void, u64, *mut u64, u64, *mut *const c_char) -> *const c_char;

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The table of functions.
        #[expect(non_snake_case, reason = "the names are LLVM's")]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Finds all functions. The error is the name of the first that is missing.
            ///
            /// # Safety
            /// The library is LLVM with the C API of version 22, and is never unloaded.
            pub(crate) unsafe fn load(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        // SAFETY: the signature is that of LLVM's header.
                        let symbol = unsafe { library.get(name.as_bytes()) };
                        *symbol.map_err(|_| stringify!($name))?
                    },)*
                })
            }
        }
    };
}

functions! {
    LLVMGetVersion(*mut c_uint, *mut c_uint, *mut c_uint);
    LLVMParseCommandLineOptions(c_int, *const *const c_char, *const c_char);
    LLVMContextCreate() -> *mut Context;
    LLVMContextDispose(*mut Context);
    LLVMContextSetDiagnosticHandler(*mut Context, Option<DiagnosticHandler>, *mut c_void);
    LLVMGetDiagInfoDescription(*mut c_void) -> *mut c_char;
    LLVMGetDiagInfoSeverity(*mut c_void) -> c_int;
    LLVMDisposeMessage(*mut c_char);

    LLVMCreateMemoryBufferWithMemoryRange(*const c_char, usize, *const c_char, Bool) -> *mut MemoryBuffer;
    LLVMCreateMemoryBufferWithMemoryRangeCopy(*const c_char, usize, *const c_char) -> *mut MemoryBuffer;
    LLVMDisposeMemoryBuffer(*mut MemoryBuffer);
    LLVMGetBufferStart(*mut MemoryBuffer) -> *const c_char;
    LLVMGetBufferSize(*mut MemoryBuffer) -> usize;

    LLVMParseBitcodeInContext2(*mut Context, *mut MemoryBuffer, *mut *mut Module) -> Bool;
    LLVMGetBitcodeModuleInContext2(*mut Context, *mut MemoryBuffer, *mut *mut Module) -> Bool;
    LLVMWriteBitcodeToMemoryBuffer(*mut Module) -> *mut MemoryBuffer;
    LLVMParseIRInContext(*mut Context, *mut MemoryBuffer, *mut *mut Module, *mut *mut c_char) -> Bool;
    LLVMModuleCreateWithNameInContext(*const c_char, *mut Context) -> *mut Module;
    LLVMDisposeModule(*mut Module);
    LLVMCloneModule(*mut Module) -> *mut Module;
    LLVMPrintModuleToString(*mut Module) -> *mut c_char;
    LLVMPrintValueToString(*mut Value) -> *mut c_char;
    LLVMLinkModules2(*mut Module, *mut Module) -> Bool;
    LLVMVerifyModule(*mut Module, c_int, *mut *mut c_char) -> Bool;
    LLVMSetTarget(*mut Module, *const c_char);
    LLVMSetDataLayout(*mut Module, *const c_char);
    LLVMSetModuleInlineAsm2(*mut Module, *const c_char, usize);
    LLVMStripModuleDebugInfo(*mut Module) -> Bool;
    LLVMCreateDIBuilderDisallowUnresolved(*mut Module) -> *mut c_void;
    LLVMDIBuilderFinalize(*mut c_void);
    LLVMDisposeDIBuilder(*mut c_void);
    LLVMDIBuilderCreateCompileUnit(*mut c_void, c_int, *mut c_void, *const c_char, usize, Bool, *const c_char, usize, c_uint, *const c_char, usize, c_int, c_uint, Bool, Bool, *const c_char, usize, *const c_char, usize) -> *mut c_void;
    LLVMDIBuilderCreateSubroutineType(*mut c_void, *mut c_void, *mut *mut c_void, c_uint, c_int) -> *mut c_void;
    LLVMDIBuilderCreateFunction(*mut c_void, *mut c_void, *const c_char, usize, *const c_char, usize, *mut c_void, c_uint, *mut c_void, Bool, Bool, c_uint, c_int, Bool) -> *mut c_void;
    LLVMDIBuilderCreateDebugLocation(*mut Context, c_uint, c_uint, *mut c_void, *mut c_void) -> *mut c_void;
    LLVMInstructionGetDebugLoc(*mut Value) -> *mut c_void;
    LLVMDILocationGetLine(*mut c_void) -> c_uint;
    LLVMDILocationGetColumn(*mut c_void) -> c_uint;
    LLVMDILocationGetScope(*mut c_void) -> *mut c_void;
    LLVMDILocationGetInlinedAt(*mut c_void) -> *mut c_void;
    LLVMGetFirstDbgRecord(*mut Value) -> *mut c_void;
    LLVMGetNextDbgRecord(*mut c_void) -> *mut c_void;
    LLVMDbgRecordGetKind(*mut c_void) -> c_int;
    LLVMDbgRecordGetDebugLoc(*mut c_void) -> *mut c_void;
    LLVMDbgVariableRecordGetVariable(*mut c_void) -> *mut c_void;
    LLVMDIScopeGetFile(*mut c_void) -> *mut c_void;
    LLVMDISubprogramGetLine(*mut c_void) -> c_uint;
    LLVMSetSubprogram(*mut Value, *mut c_void);
    LLVMInstructionSetDebugLoc(*mut Value, *mut c_void);

    LLVMGetFirstFunction(*mut Module) -> *mut Value;
    LLVMGetNextFunction(*mut Value) -> *mut Value;
    LLVMGetNamedFunction(*mut Module, *const c_char) -> *mut Value;
    LLVMAddFunction(*mut Module, *const c_char, *mut Type) -> *mut Value;
    LLVMDeleteFunction(*mut Value);
    LLVMGetFirstGlobal(*mut Module) -> *mut Value;
    LLVMGetNextGlobal(*mut Value) -> *mut Value;
    LLVMAddGlobalInAddressSpace(*mut Module, *mut Type, *const c_char, c_uint) -> *mut Value;
    LLVMGetNamedGlobal(*mut Module, *const c_char) -> *mut Value;
    LLVMDeleteGlobal(*mut Value);
    LLVMGetInitializer(*mut Value) -> *mut Value;
    LLVMSetInitializer(*mut Value, *mut Value);
    LLVMIsGlobalConstant(*mut Value) -> Bool;
    LLVMIsThreadLocal(*mut Value) -> Bool;
    LLVMGetUnnamedAddress(*mut Value) -> c_int;
    LLVMGetFirstGlobalAlias(*mut Module) -> *mut Value;
    LLVMGetNextGlobalAlias(*mut Value) -> *mut Value;
    LLVMAliasGetAliasee(*mut Value) -> *mut Value;
    LLVMIsDeclaration(*mut Value) -> Bool;
    LLVMGetLinkage(*mut Value) -> c_int;
    LLVMSetLinkage(*mut Value, c_int);
    LLVMSetVisibility(*mut Value, c_int);
    LLVMSetSection(*mut Value, *const c_char);
    LLVMSetComdat(*mut Value, *mut c_void);
    LLVMSetAlignment(*mut Value, c_uint);
    LLVMGlobalGetValueType(*mut Value) -> *mut Type;
    LLVMSetFunctionCallConv(*mut Value, c_uint);
    LLVMGetFunctionCallConv(*mut Value) -> c_uint;
    LLVMSetInstructionCallConv(*mut Value, c_uint);
    LLVMSetPersonalityFn(*mut Value, *mut Value);
    LLVMHasPersonalityFn(*mut Value) -> Bool;
    LLVMGetParam(*mut Value, c_uint) -> *mut Value;
    LLVMGetParamParent(*mut Value) -> *mut Value;

    LLVMGetSubprogram(*mut Value) -> *mut c_void;
    LLVMMetadataAsValue(*mut Context, *mut c_void) -> *mut Value;
    LLVMValueAsMetadata(*mut Value) -> *mut c_void;
    LLVMGetMetadataKind(*mut c_void) -> c_uint;
    LLVMGetDINodeTag(*mut c_void) -> u16;
    LLVMIsAMDNode(*mut Value) -> *mut Value;
    LLVMIsAMDString(*mut Value) -> *mut Value;
    LLVMGetMDString(*mut Value, *mut c_uint) -> *const c_char;
    LLVMGetMDNodeNumOperands(*mut Value) -> c_uint;
    LLVMGetMDNodeOperands(*mut Value, *mut *mut Value);
    LLVMDITypeGetOffsetInBits(*mut c_void) -> u64;
    LLVMDITypeGetSizeInBits(*mut c_void) -> u64;
    LLVMDIFileGetDirectory(*mut c_void, *mut c_uint) -> *const c_char;
    LLVMDIFileGetFilename(*mut c_void, *mut c_uint) -> *const c_char;

    LLVMGetValueName2(*mut Value, *mut usize) -> *const c_char;
    LLVMSetValueName2(*mut Value, *const c_char, usize);
    LLVMReplaceAllUsesWith(*mut Value, *mut Value);
    LLVMGetFirstUse(*mut Value) -> *mut Use;
    LLVMGetNextUse(*mut Use) -> *mut Use;
    LLVMGetUser(*mut Use) -> *mut Value;
    LLVMTypeOf(*mut Value) -> *mut Type;
    LLVMGetValueKind(*mut Value) -> c_int;
    LLVMGetOperand(*mut Value, c_uint) -> *mut Value;
    LLVMSetOperand(*mut Value, c_uint, *mut Value);
    LLVMGetNumOperands(*mut Value) -> c_int;
    LLVMConstIntGetZExtValue(*mut Value) -> c_ulonglong;
    LLVMGetAsString(*mut Value, *mut usize) -> *const c_char;
    LLVMGetConstOpcode(*mut Value) -> c_int;
    LLVMGetAggregateElement(*mut Value, c_uint) -> *mut Value;
    LLVMIsNull(*mut Value) -> Bool;

    LLVMGetFirstBasicBlock(*mut Value) -> *mut BasicBlock;
    LLVMGetNextBasicBlock(*mut BasicBlock) -> *mut BasicBlock;
    LLVMGetFirstInstruction(*mut BasicBlock) -> *mut Value;
    LLVMGetNextInstruction(*mut Value) -> *mut Value;
    LLVMMoveBasicBlockAfter(*mut BasicBlock, *mut BasicBlock);
    LLVMMoveBasicBlockBefore(*mut BasicBlock, *mut BasicBlock);
    LLVMGetBasicBlockTerminator(*mut BasicBlock) -> *mut Value;
    LLVMGetNumSuccessors(*mut Value) -> c_uint;
    LLVMGetSuccessor(*mut Value, c_uint) -> *mut BasicBlock;
    LLVMGetICmpPredicate(*mut Value) -> c_int;
    LLVMCountIncoming(*mut Value) -> c_uint;
    LLVMGetIncomingValue(*mut Value, c_uint) -> *mut Value;
    LLVMGetIncomingBlock(*mut Value, c_uint) -> *mut BasicBlock;
    LLVMAddIncoming(*mut Value, *mut *mut Value, *mut *mut BasicBlock, c_uint);
    LLVMGetInstructionOpcode(*mut Value) -> c_int;
    LLVMGetInstructionParent(*mut Value) -> *mut BasicBlock;
    LLVMGetBasicBlockParent(*mut BasicBlock) -> *mut Value;
    LLVMInstructionEraseFromParent(*mut Value);
    LLVMInstructionClone(*mut Value) -> *mut Value;
    LLVMSetSuccessor(*mut Value, c_uint, *mut BasicBlock);
    LLVMIsConstant(*mut Value) -> Bool;
    LLVMValueIsBasicBlock(*mut Value) -> Bool;
    LLVMGetNUW(*mut Value) -> Bool;
    LLVMSetNUW(*mut Value, Bool);
    LLVMGetNSW(*mut Value) -> Bool;
    LLVMSetNSW(*mut Value, Bool);
    LLVMGetExact(*mut Value) -> Bool;
    LLVMSetExact(*mut Value, Bool);
    LLVMGetNNeg(*mut Value) -> Bool;
    LLVMSetNNeg(*mut Value, Bool);
    LLVMSetIsDisjoint(*mut Value, Bool);
    LLVMGEPGetNoWrapFlags(*mut Value) -> c_uint;
    LLVMGEPSetNoWrapFlags(*mut Value, c_uint);
    LLVMGetIntrinsicID(*mut Value) -> c_uint;
    LLVMLookupIntrinsicID(*const c_char, usize) -> c_uint;
    LLVMGetIntrinsicDeclaration(*mut Module, c_uint, *mut *mut Type, usize) -> *mut Value;
    LLVMGetPersonalityFn(*mut Value) -> *mut Value;
    LLVMGetMDKindIDInContext(*mut Context, *const c_char, c_uint) -> c_uint;
    LLVMMDNodeInContext2(*mut Context, *mut *mut c_void, usize) -> *mut c_void;
    LLVMMDStringInContext2(*mut Context, *const c_char, usize) -> *mut c_void;
    LLVMTemporaryMDNode(*mut Context, *mut *mut c_void, usize) -> *mut c_void;
    LLVMMetadataReplaceAllUsesWith(*mut c_void, *mut c_void);
    LLVMGetMetadata(*mut Value, c_uint) -> *mut Value;
    LLVMSetMetadata(*mut Value, c_uint, *mut Value);
    LLVMGetTypeContext(*mut Type) -> *mut Context;
    LLVMInstructionRemoveFromParent(*mut Value);
    LLVMSetTailCall(*mut Value, Bool);
    LLVMGetCalledValue(*mut Value) -> *mut Value;
    LLVMGetNumArgOperands(*mut Value) -> c_uint;
    LLVMGetGEPSourceElementType(*mut Value) -> *mut Type;
    LLVMGetOrdering(*mut Value) -> c_int;
    LLVMSetOrdering(*mut Value, c_int);
    LLVMGetAtomicSyncScopeID(*mut Value) -> c_uint;
    LLVMSetAtomicSyncScopeID(*mut Value, c_uint);
    LLVMIsAtomic(*mut Value) -> Bool;
    LLVMGetAllocatedType(*mut Value) -> *mut Type;
    LLVMGetAlignment(*mut Value) -> c_uint;
    LLVMGetSyncScopeID(*mut Context, *const c_char, usize) -> c_uint;
    LLVMBuildFenceSyncScope(*mut Builder, c_int, c_uint, *const c_char) -> *mut Value;
    LLVMSetFastMathFlags(*mut Value, c_uint);
    LLVMCanValueUseFastMathFlags(*mut Value) -> Bool;

    LLVMGetFCmpPredicate(*mut Value) -> c_int;
    LLVMGetSwitchCaseValue(*mut Value, c_uint) -> *mut Value;
    LLVMGetVolatile(*mut Value) -> Bool;
    LLVMIsInBounds(*mut Value) -> Bool;
    LLVMGetIsDisjoint(*mut Value) -> Bool;
    LLVMGetAtomicRMWBinOp(*mut Value) -> c_int;
    LLVMGetCmpXchgSuccessOrdering(*mut Value) -> c_int;
    LLVMGetCmpXchgFailureOrdering(*mut Value) -> c_int;
    LLVMGetFastMathFlags(*mut Value) -> c_uint;
    LLVMGetNumIndices(*mut Value) -> c_uint;
    LLVMGetIndices(*mut Value) -> *const c_uint;
    LLVMGetNumMaskElements(*mut Value) -> c_uint;
    LLVMGetMaskValue(*mut Value, c_uint) -> c_int;
    LLVMCountParams(*mut Value) -> c_uint;
    LLVMGetTypeAttributeValue(*mut Attribute) -> *mut Type;
    LLVMGetEnumAttributeValue(*mut Attribute) -> u64;
    LLVMConstBitCast(*mut Value, *mut Type) -> *mut Value;

    LLVMGetElementType(*mut Type) -> *mut Type;
    LLVMGetArrayLength2(*mut Type) -> u64;
    LLVMGetVectorSize(*mut Type) -> c_uint;
    LLVMCountStructElementTypes(*mut Type) -> c_uint;
    LLVMStructGetTypeAtIndex(*mut Type, c_uint) -> *mut Type;
    LLVMGetReturnType(*mut Type) -> *mut Type;
    LLVMGetCalledFunctionType(*mut Value) -> *mut Type;
    LLVMGetModuleDataLayout(*mut Module) -> *mut TargetData;
    LLVMABISizeOfType(*mut TargetData, *mut Type) -> c_ulonglong;
    LLVMStoreSizeOfType(*mut TargetData, *mut Type) -> c_ulonglong;
    LLVMABIAlignmentOfType(*mut TargetData, *mut Type) -> c_uint;
    LLVMOffsetOfElement(*mut TargetData, *mut Type, c_uint) -> c_ulonglong;

    LLVMGetTypeKind(*mut Type) -> c_int;
    LLVMGetIntTypeWidth(*mut Type) -> c_uint;
    LLVMGetPointerAddressSpace(*mut Type) -> c_uint;
    LLVMVoidTypeInContext(*mut Context) -> *mut Type;
    LLVMIntTypeInContext(*mut Context, c_uint) -> *mut Type;
    LLVMFloatTypeInContext(*mut Context) -> *mut Type;
    LLVMDoubleTypeInContext(*mut Context) -> *mut Type;
    LLVMPointerTypeInContext(*mut Context, c_uint) -> *mut Type;
    LLVMArrayType2(*mut Type, u64) -> *mut Type;
    LLVMVectorType(*mut Type, c_uint) -> *mut Type;
    LLVMStructTypeInContext(*mut Context, *mut *mut Type, c_uint, Bool) -> *mut Type;
    LLVMFunctionType(*mut Type, *mut *mut Type, c_uint, Bool) -> *mut Type;
    LLVMConstInt(*mut Type, c_ulonglong, Bool) -> *mut Value;
    LLVMConstNull(*mut Type) -> *mut Value;
    LLVMConstAllOnes(*mut Type) -> *mut Value;
    LLVMConstVector(*mut *mut Value, c_uint) -> *mut Value;
    LLVMConstStringInContext2(*mut Context, *const c_char, usize, Bool) -> *mut Value;
    LLVMSetGlobalConstant(*mut Value, Bool);
    LLVMGetPoison(*mut Type) -> *mut Value;
    LLVMConstIntToPtr(*mut Value, *mut Type) -> *mut Value;

    LLVMGetEnumAttributeKindForName(*const c_char, usize) -> c_uint;
    LLVMCreateEnumAttribute(*mut Context, c_uint, u64) -> *mut Attribute;
    LLVMCreateTypeAttribute(*mut Context, c_uint, *mut Type) -> *mut Attribute;
    LLVMCreateStringAttribute(*mut Context, *const c_char, c_uint, *const c_char, c_uint) -> *mut Attribute;
    LLVMAddAttributeAtIndex(*mut Value, c_uint, *mut Attribute);
    LLVMGetEnumAttributeAtIndex(*mut Value, c_uint, c_uint) -> *mut Attribute;
    LLVMGetStringAttributeValue(*mut Attribute, *mut c_uint) -> *const c_char;
    LLVMGetStringAttributeAtIndex(*mut Value, c_uint, *const c_char, c_uint) -> *mut Attribute;
    LLVMRemoveEnumAttributeAtIndex(*mut Value, c_uint, c_uint);
    LLVMRemoveStringAttributeAtIndex(*mut Value, c_uint, *const c_char, c_uint);
    LLVMGetCallSiteEnumAttribute(*mut Value, c_uint, c_uint) -> *mut Attribute;
    LLVMRemoveCallSiteEnumAttribute(*mut Value, c_uint, c_uint);
    LLVMAddCallSiteAttribute(*mut Value, c_uint, *mut Attribute);

    LLVMCreateBuilderInContext(*mut Context) -> *mut Builder;
    LLVMDisposeBuilder(*mut Builder);
    LLVMAppendBasicBlockInContext(*mut Context, *mut Value, *const c_char) -> *mut BasicBlock;
    LLVMPositionBuilderAtEnd(*mut Builder, *mut BasicBlock);
    LLVMPositionBuilderBefore(*mut Builder, *mut Value);
    LLVMBuildRetVoid(*mut Builder) -> *mut Value;
    LLVMBuildRet(*mut Builder, *mut Value) -> *mut Value;
    LLVMBuildZExt(*mut Builder, *mut Value, *mut Type, *const c_char) -> *mut Value;
    LLVMBuildTrunc(*mut Builder, *mut Value, *mut Type, *const c_char) -> *mut Value;
    LLVMBuildPhi(*mut Builder, *mut Type, *const c_char) -> *mut Value;
    LLVMBuildICmp(*mut Builder, c_int, *mut Value, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildUnreachable(*mut Builder) -> *mut Value;
    LLVMBuildBr(*mut Builder, *mut BasicBlock) -> *mut Value;
    LLVMBuildCondBr(*mut Builder, *mut Value, *mut BasicBlock, *mut BasicBlock) -> *mut Value;
    LLVMBuildNot(*mut Builder, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildAdd(*mut Builder, *mut Value, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildSub(*mut Builder, *mut Value, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildMul(*mut Builder, *mut Value, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildSelect(*mut Builder, *mut Value, *mut Value, *mut Value, *const c_char) -> *mut Value;
    LLVMInsertIntoBuilder(*mut Builder, *mut Value);
    LLVMBuildCall2(*mut Builder, *mut Type, *mut Value, *mut *mut Value, c_uint, *const c_char) -> *mut Value;
    LLVMBuildLoad2(*mut Builder, *mut Type, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildPtrToInt(*mut Builder, *mut Value, *mut Type, *const c_char) -> *mut Value;
    LLVMBuildIntToPtr(*mut Builder, *mut Value, *mut Type, *const c_char) -> *mut Value;
    LLVMBuildAddrSpaceCast(*mut Builder, *mut Value, *mut Type, *const c_char) -> *mut Value;
    LLVMBuildStore(*mut Builder, *mut Value, *mut Value) -> *mut Value;
    LLVMBuildArrayAlloca(*mut Builder, *mut Type, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildGEP2(*mut Builder, *mut Type, *mut Value, *mut *mut Value, c_uint, *const c_char) -> *mut Value;
    LLVMBuildBinOp(*mut Builder, c_int, *mut Value, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildCast(*mut Builder, c_int, *mut Value, *mut Type, *const c_char) -> *mut Value;
    LLVMBuildFCmp(*mut Builder, c_int, *mut Value, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildFNeg(*mut Builder, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildFreeze(*mut Builder, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildExtractElement(*mut Builder, *mut Value, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildInsertElement(*mut Builder, *mut Value, *mut Value, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildShuffleVector(*mut Builder, *mut Value, *mut Value, *mut Value, *const c_char) -> *mut Value;
    LLVMBuildExtractValue(*mut Builder, *mut Value, c_uint, *const c_char) -> *mut Value;
    LLVMBuildInsertValue(*mut Builder, *mut Value, *mut Value, c_uint, *const c_char) -> *mut Value;
    LLVMBuildAlloca(*mut Builder, *mut Type, *const c_char) -> *mut Value;
    LLVMGetInsertBlock(*mut Builder) -> *mut BasicBlock;
    LLVMSetCurrentDebugLocation2(*mut Builder, *mut c_void);

    LLVMGetTargetFromTriple(*const c_char, *mut *mut Target, *mut *mut c_char) -> Bool;
    LLVMCreateTargetMachine(*mut Target, *const c_char, *const c_char, *const c_char, c_int, c_int, c_int) -> *mut TargetMachine;
    LLVMDisposeTargetMachine(*mut TargetMachine);
    LLVMCreateTargetDataLayout(*mut TargetMachine) -> *mut TargetData;
    LLVMDisposeTargetData(*mut TargetData);
    LLVMCopyStringRepOfTargetData(*mut TargetData) -> *mut c_char;
    LLVMTargetMachineEmitToMemoryBuffer(*mut TargetMachine, *mut Module, c_int, *mut *mut c_char, *mut *mut MemoryBuffer) -> Bool;

    LLVMCreateDisasmCPUFeatures(*const c_char, *const c_char, *const c_char, *mut c_void, c_int, *const c_void, Option<SymbolLookup>) -> *mut Disassembler;
    LLVMSetDisasmOptions(*mut Disassembler, u64) -> c_int;
    LLVMDisasmInstruction(*mut Disassembler, *mut u8, u64, u64, *mut c_char, usize) -> usize;
    LLVMDisasmDispose(*mut Disassembler);

    LLVMCreatePassBuilderOptions() -> *mut PassOptions;
    LLVMDisposePassBuilderOptions(*mut PassOptions);
    LLVMPassBuilderOptionsSetLoopVectorization(*mut PassOptions, Bool);
    LLVMPassBuilderOptionsSetSLPVectorization(*mut PassOptions, Bool);
    LLVMPassBuilderOptionsSetMergeFunctions(*mut PassOptions, Bool);
    LLVMPassBuilderOptionsSetInlinerThreshold(*mut PassOptions, c_int);
    LLVMRunPasses(*mut Module, *const c_char, *mut TargetMachine, *mut PassOptions) -> *mut Error;
    LLVMRunPassesOnFunction(*mut Value, *const c_char, *mut TargetMachine, *mut PassOptions) -> *mut Error;
    LLVMGetErrorMessage(*mut Error) -> *mut c_char;
    LLVMDisposeErrorMessage(*mut c_char);

    LLVMInitializeX86Target();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeX86Disassembler();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
}
