"""Float64 reference loops in plain Python: the formulas of the papers, written down once more, token by token.

Nothing here calls Windage. A row is a list of tokens; the caller cuts and joins.
"""

import math


def clip(x, low, high):
    return min(max(x, low), high)


def weighted_chain(rewards, values, kappas, *, bootstrap=0.0, gamma=1.0, lam=1.0, trace="product"):
    """E_t = κ_t (δ_t + γ λ E_{t+}) or κ_t δ_t + γ λ E_{t+}; and δ_t + γ λ E_{t+}."""
    errors, advantages = [0.0] * len(values), [0.0] * len(values)
    next_value, next_error = bootstrap, 0.0
    for t in reversed(range(len(values))):
        delta = rewards[t] + gamma * next_value - values[t]
        advantages[t] = delta + gamma * lam * next_error
        if trace == "product":
            errors[t] = kappas[t] * advantages[t]
        else:
            errors[t] = kappas[t] * delta + gamma * lam * next_error
        next_value, next_error = values[t], errors[t]
    return advantages, errors


def copc(rewards, values, log_ratio, *, clip_at, lam_actor=1.0, lam_critic=1.0, actor_adv="next", **rest):
    kappas = [clip(math.exp(d), *clip_at) for d in log_ratio]
    advantages, own = weighted_chain(rewards, values, kappas, lam=lam_actor, **rest)
    _, errors = weighted_chain(rewards, values, kappas, lam=lam_critic, **rest)
    return (own if actor_adv == "own" else advantages), [v + e for v, e in zip(values, errors, strict=True)]


def gae(rewards, values, *, bootstrap=0.0, gamma=1.0, lam=1.0):
    """Forward definition, a double sum: Â_t = Σ_l (γ λ)^l δ_{t+l}."""
    size = len(values)
    after = [*values[1:], bootstrap]
    deltas = [rewards[t] + gamma * after[t] - values[t] for t in range(size)]
    return [sum((gamma * lam) ** (s - t) * deltas[s] for s in range(t, size)) for t in range(size)]


def vtrace(rewards, values, log_ratio, *, bootstrap=0.0, gamma=1.0, lam=1.0, rho_max=1.0, c_max=1.0):
    """Forward definition: v_t = V_t + Σ_s γ^{s-t} (Π_{t≤i<s} c_i) ρ̂_s δ_s; q_t - V_t for the policy."""
    size = len(values)
    rho = [min(rho_max, math.exp(d)) for d in log_ratio]
    c = [lam * min(c_max, math.exp(d)) for d in log_ratio]
    after = [*values[1:], bootstrap]
    deltas = [rho[t] * (rewards[t] + gamma * after[t] - values[t]) for t in range(size)]
    targets = []
    for t in range(size):
        total = values[t]
        for s in range(t, size):
            total += gamma ** (s - t) * math.prod(c[t:s]) * deltas[s]
        targets.append(total)
    targets_after = [*targets[1:], bootstrap]
    q = [rewards[t] + gamma * (lam * targets_after[t] + (1 - lam) * after[t]) for t in range(size)]
    return [q[t] - values[t] for t in range(size)], targets


def group_mean(outcomes, groups, *, eps=1e-6, scale=True):
    """One number a trajectory."""
    found = []
    for outcome, group in zip(outcomes, groups, strict=True):
        members = [o for o, g in zip(outcomes, groups, strict=True) if g == group]
        mean = sum(members) / len(members)
        if len(members) == 1 or max(members) == min(members):
            found.append(0.0)
            continue
        std = math.sqrt(sum((m - mean) ** 2 for m in members) / (len(members) - 1))
        found.append((outcome - mean) / (std + eps) if scale else outcome - mean)
    return found


def leave_one_out(outcomes, groups):
    found = []
    for i, (outcome, group) in enumerate(zip(outcomes, groups, strict=True)):
        others = [o for j, (o, g) in enumerate(zip(outcomes, groups, strict=True)) if g == group and j != i]
        found.append(outcome - sum(others) / len(others) if others else 0.0)
    return found


def ppo_surrogate(logprob, anchor, advantage, *, low=0.2, high=0.2, dual=None):
    ratio = math.exp(clip(logprob - anchor, -20, 20))
    surrogate = min(ratio * advantage, clip(ratio, 1 - low, 1 + high) * advantage)
    if dual is not None and advantage < 0:
        surrogate = max(surrogate, dual * advantage)
    return surrogate
