from metfa.attacks._files import load_attack as load_attack
from metfa.attacks.attack import manipulate as manipulate
from metfa.attacks.attack import targeted as targeted
from metfa.attacks.result import AttackResult as AttackResult
from metfa.attacks.result import Measured as Measured
from metfa.attacks.settings import AttackSettings as AttackSettings
