"""The paper's networks, a transform and a network as one (Defended), and both on disk without pickles."""

from linocut.models.architecture import NETWORKS, Architecture, build
from linocut.models.card import Card
from linocut.models.defended import Defended
from linocut.models.store import load, read_card, save

__all__ = ["NETWORKS", "Architecture", "Card", "Defended", "build", "load", "read_card", "save"]
