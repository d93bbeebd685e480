//! The tags of markers, as in Android. Each is a category, such as `atrace:view`; `atrace` is all of them.
//= docs/kernel.md#tags

/// On while any other is.
pub const ALWAYS: u64 = 1 << 0;
/// `atrace:gfx`
pub const GRAPHICS: u64 = 1 << 1;
/// `atrace:input`
pub const INPUT: u64 = 1 << 2;
/// `atrace:view`
pub const VIEW: u64 = 1 << 3;
/// `atrace:webview`
pub const WEBVIEW: u64 = 1 << 4;
/// `atrace:wm`
pub const WINDOW_MANAGER: u64 = 1 << 5;
/// `atrace:am`
pub const ACTIVITY_MANAGER: u64 = 1 << 6;
/// `atrace:sm`
pub const SYNC_MANAGER: u64 = 1 << 7;
/// `atrace:audio`
pub const AUDIO: u64 = 1 << 8;
/// `atrace:video`
pub const VIDEO: u64 = 1 << 9;
/// `atrace:camera`
pub const CAMERA: u64 = 1 << 10;
/// `atrace:hal`
pub const HAL: u64 = 1 << 11;
/// `atrace:app`
pub const APP: u64 = 1 << 12;
/// `atrace:res`
pub const RESOURCES: u64 = 1 << 13;
/// `atrace:dalvik`
pub const DALVIK: u64 = 1 << 14;
/// `atrace:rs`
pub const RS: u64 = 1 << 15;
/// `atrace:bionic`
pub const BIONIC: u64 = 1 << 16;
/// `atrace:power`
pub const POWER: u64 = 1 << 17;
/// `atrace:pm`
pub const PACKAGE_MANAGER: u64 = 1 << 18;
/// `atrace:ss`
pub const SYSTEM_SERVER: u64 = 1 << 19;
/// `atrace:database`
pub const DATABASE: u64 = 1 << 20;
/// `atrace:network`
pub const NETWORK: u64 = 1 << 21;
/// `atrace:adb`
pub const ADB: u64 = 1 << 22;
/// `atrace:vibrator`
pub const VIBRATOR: u64 = 1 << 23;
/// `atrace:aidl`
pub const AIDL: u64 = 1 << 24;
/// `atrace:nnapi`
pub const NNAPI: u64 = 1 << 25;
/// `atrace:rro`
pub const RRO: u64 = 1 << 26;
/// `atrace:thermal`
pub const THERMAL: u64 = 1 << 27;
/// Off.
pub const NEVER: u64 = 0;
