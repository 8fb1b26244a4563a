"""Both ends of the control socket: who may connect, frames in, answers back."""
