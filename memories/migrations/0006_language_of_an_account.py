from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0005_lease_of_a_session"),
    ]

    operations = [
        migrations.AddField(
            model_name="account",
            name="language",
            field=models.CharField(
                choices=[
                    ("simple", "Simple"),
                    ("arabic", "Arabic"),
                    ("armenian", "Armenian"),
                    ("basque", "Basque"),
                    ("catalan", "Catalan"),
                    ("danish", "Danish"),
                    ("dutch", "Dutch"),
                    ("english", "English"),
                    ("estonian", "Estonian"),
                    ("finnish", "Finnish"),
                    ("french", "French"),
                    ("german", "German"),
                    ("greek", "Greek"),
                    ("hindi", "Hindi"),
                    ("hungarian", "Hungarian"),
                    ("indonesian", "Indonesian"),
                    ("irish", "Irish"),
                    ("italian", "Italian"),
                    ("lithuanian", "Lithuanian"),
                    ("nepali", "Nepali"),
                    ("norwegian", "Norwegian"),
                    ("portuguese", "Portuguese"),
                    ("romanian", "Romanian"),
                    ("russian", "Russian"),
                    ("serbian", "Serbian"),
                    ("spanish", "Spanish"),
                    ("swedish", "Swedish"),
                    ("tamil", "Tamil"),
                    ("turkish", "Turkish"),
                    ("yiddish", "Yiddish"),
                ],
                db_default="english",
                default="english",
                help_text="Of its memories: words are found in all their forms. Simple: any other language.",
                max_length=20,
            ),
        ),
    ]
