"""The paper's theorems as checks, their limits as counterexamples, and certificates that go further.

    definitions   FC, AC, S, CAP, MNIST_D, MNIST_G: the paper's objects in its own letters
    theorem1..3   what holds, decided; where it stops holding, shown
    certificate   which pixels of any image an adversary cannot move across the split
    network, bounds, branching, training, attack   networks whose predictions are proven on what is left
    findings      what `linocut theory` prints; figures: what it draws

Grey levels are whole numbers 0..255 throughout; a radius eps is counted in levels too, and may be a fraction.
"""
