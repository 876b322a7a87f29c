"""Sets what allauth does at sign-in; none of it depends on the installation."""

LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "config.sign_in.accounts.Adapter"
# The adapter counts wrong passwords at sign-in; the library's other limits hold, for a password asked again among them.
ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": None}
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # a mail to an address that no account has
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_REDIRECT_URL = "/accounts/login/"
# allauth's own would keep addresses in rows beside the account's, and go on sending links to one that was replaced.
ACCOUNT_PASSWORD_RESET_TOKEN_GENERATOR = "approvals.accounts.password_reset.LinkKeys"  # noqa: S105

# Second factors: passkeys sign in alone and always know their owner; recovery codes are shown once.
MFA_ADAPTER = "config.sign_in.factors.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_USER_VERIFICATION = "required"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = True  # the forms compare the full origin with HOLDPOINT_ORIGINS instead
MFA_ALLOW_UNVERIFIED_EMAIL = True  # addresses are given by administrators
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_TOTP_TOLERANCE = 1
MFA_RATE_LIMITS = {"webauthn_login": "60/m/ip"}
MFA_FORMS = {
    "authenticate": "config.sign_in.factors.CodeForm",
    "reauthenticate": "config.sign_in.factors.ConfirmByCodeForm",
    "activate_totp": "config.sign_in.factors.ActivateForm",
    "add_webauthn": "config.sign_in.factors.AddPasskeyForm",
    "authenticate_webauthn": "config.sign_in.factors.PasskeyForm",
    "login_webauthn": "config.sign_in.factors.SignInByPasskeyForm",
    "reauthenticate_webauthn": "config.sign_in.factors.ConfirmByPasskeyForm",
}

# Single sign-on by OpenID Connect.
SOCIALACCOUNT_ADAPTER = "config.sign_in.openid.SocialAdapter"
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False  # the adapter links by its own, stricter rule
