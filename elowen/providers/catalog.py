"""The providers whose accounts can be connected. All speak as OpenAI does."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Provider:
    id: str
    name: str
    base_url: str  # empty where each installation has its own
    batch_texts: int = 50  # the most texts that one request may hold


PROVIDERS = {
    one.id: one
    for one in (
        Provider("openai", "OpenAI", "https://api.openai.com"),
        Provider("openrouter", "OpenRouter", "https://openrouter.ai/api"),
        Provider("mistral", "Mistral", "https://api.mistral.ai"),
        Provider("together", "Together", "https://api.together.xyz"),
        Provider("compatible", "Another server that speaks as OpenAI does", "", batch_texts=32),
    )
}
