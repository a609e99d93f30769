"""Deployment facts, read from the environment once. What an operator changes while it runs is not here."""

from pathlib import Path

import django_stubs_ext
from django.utils.csp import CSP

from elowen.lib.env import (
    database_from_url,
    env_bool,
    env_choice,
    env_int,
    env_list,
    env_secret,
    env_str,
    required_secret,
)

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(env_str("ELOWEN_DATA", "var")).resolve()
VERSION = "0.1.0"

SECRET_KEY = required_secret("ELOWEN_SECRET_KEY")
DEBUG = env_bool("ELOWEN_DEBUG")
ALLOWED_HOSTS = env_list("ELOWEN_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("ELOWEN_TRUSTED_ORIGINS")
ROOT_URLCONF = "elowen.urls"
WSGI_APPLICATION = "elowen.wsgi.application"

INSTALLED_APPS = [
    "elowen",
    "memories",
    "embeddings",
    "recall",
    "maintenance",
    "django_q",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# Database. The pool is for web processes alone: a queue that forks would share its connections.
DB_POOL = env_int("ELOWEN_DB_POOL", 0, low=0, high=64)
DATABASES = {
    "default": database_from_url(env_str("DATABASE_URL"))
    | {"CONN_MAX_AGE": 0 if DB_POOL else 60, "CONN_HEALTH_CHECKS": True}
}
if DB_POOL:
    DATABASES["default"]["OPTIONS"] |= {"pool": {"min_size": 1, "max_size": DB_POOL}}  # type: ignore[operator]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Accounts and sessions.
AUTH_USER_MODEL = "memories.Account"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "memories:list"
LOGOUT_REDIRECT_URL = "sign-in"

# Behind HTTPS (ELOWEN_HTTPS=1) cookies travel encrypted only, and browsers are told to stay there.
HTTPS = env_bool("ELOWEN_HTTPS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": [CSP.SELF],
    "script-src": [CSP.SELF, CSP.NONCE],
    "style-src": [CSP.SELF, CSP.NONCE],
    "img-src": [CSP.SELF, "data:"],
    "object-src": [CSP.NONE],
    "base-uri": [CSP.NONE],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
}

# Whether there is HTTPS in front is the operator's to say (ELOWEN_HTTPS); subdomains are not ours to bind.
SILENCED_SYSTEM_CHECKS = [
    "security.W004",
    "security.W005",
    "security.W008",
    "security.W012",
    "security.W016",
    "security.W021",
]

# Bodies of requests: a batch of long memories fits; anything larger is a 413.
DATA_UPLOAD_MAX_MEMORY_SIZE = env_int("ELOWEN_MAX_REQUEST_BYTES", 8_000_000, low=1_000_000, high=64_000_000)
APPEND_SLASH = False

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [("help", BASE_DIR / "docs" / "img")]  # the pictures of the help
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG or env_bool("ELOWEN_PLAIN_STATIC")
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_AUTOREFRESH = DEBUG or env_bool("ELOWEN_PLAIN_STATIC")
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["elowen.api.KeyAuthentication", "elowen.api.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated", "elowen.api.HasScope"],
    "DEFAULT_PARSER_CLASSES": ["elowen.lib.rest.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "elowen.lib.rest.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "elowen.api.problem_response",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Elowen",
    "DESCRIPTION": "Long-term memory for AI assistants: store, recall in a byte budget, fade, restore.",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "elowen.schema.document_problems",
    ],
}

# Background work. A task that died comes back `retry` seconds after it was taken, so `retry` must outlast
# its timeout and the wait in a worker's own queue.
QUEUE_WORKERS = env_int("ELOWEN_QUEUE_WORKERS", 2, low=1, high=32)
Q_CLUSTER = {
    "name": "elowen",
    "orm": "default",
    "workers": QUEUE_WORKERS,
    "queue_limit": QUEUE_WORKERS,
    "bulk": 1,
    "timeout": 120,
    "retry": 300,
    "max_attempts": 3,
    "catch_up": False,
    "poll": 0.2,
    "save_limit": 500,
    "recycle": 1000,
    "label": "Background work",
    "sync": env_bool("ELOWEN_QUEUE_INLINE"),
}

# Embeddings: the bundled model, and what an endpoint of one's own needs.
EMBEDDER = env_choice("ELOWEN_EMBEDDER", "english", ("english", "multilingual"))
EMBEDDING_KEY = env_secret("ELOWEN_EMBEDDING_KEY")
OPENROUTER_URL = env_str("ELOWEN_OPENROUTER_URL", "https://openrouter.ai")  # where people sign in for a key
ALLOW_LINK_LOCAL = env_bool("ELOWEN_ALLOW_LINK_LOCAL")

LOGGING: dict[str, object] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}},
    "loggers": {"django-q": {"level": "WARNING"}},  # several lines a task otherwise
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {
        "handlers": ["console"],
        "level": env_choice("ELOWEN_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR")),
    },
}
