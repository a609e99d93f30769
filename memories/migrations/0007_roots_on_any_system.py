import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0006_language_of_an_account"),
    ]

    operations = [
        migrations.AlterField(
            model_name="project",
            name="root_path",
            field=models.CharField(
                blank=True,
                max_length=1000,
                validators=[
                    django.core.validators.RegexValidator(
                        "^(/|[A-Za-z]:[\\\\/]|\\\\\\\\)",
                        "The root path must be absolute, like /srv/app or C:\\app",
                    )
                ],
            ),
        ),
    ]
