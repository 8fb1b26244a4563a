"""The control socket, from both ends: who may connect, frames in, answers back."""
